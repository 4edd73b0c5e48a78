/**
 * Parses Thrift's compact protocol (apache/thrift, doc/specs/thrift-compact-protocol.md) within
 * bounds. `hyparquet` trusts the sizes that it reads, so a crafted list could make it allocate
 * gigabytes. It only gets a structure that was parsed here first.
 */
import { SegmentError } from "../storage/segment_error.ts";

/** The integers and structures in a structure, by field id. Other values are checked and dropped. */
export type ThriftStruct = Map<number, number | ThriftStruct>;

/** Maximum nesting depth; a Parquet footer has 6 levels. */
const DEPTH_MAX = 12;
/** Maximum bytes in a 64-bit integer. */
const VARINT_BYTES_MAX = 10;

/** The types that Parquet uses. An element of a list of booleans takes a byte. */
const STOP = 0;
const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const I16 = 4;
const I32 = 5;
const I64 = 6;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;

/**
 * Parses the structure that starts at `start`.
 * @throws {SegmentError} if it is malformed or not entirely within `bytes`.
 */
export function parseThrift(
  bytes: Uint8Array,
  start: number,
): { struct: ThriftStruct; end: number } {
  const reader = new ThriftReader(bytes, start);
  const struct = reader.struct(DEPTH_MAX);
  return { struct, end: reader.at };
}

class ThriftReader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  struct(depthLeft: number): ThriftStruct {
    if (depthLeft === 0) throw new SegmentError("has a Thrift structure that is nested too deeply");
    const fields: ThriftStruct = new Map();
    for (let id = 0;;) {
      const head = this.#byte();
      const type = head & 0x0f;
      if (type === STOP) return fields;
      id = head >> 4 === 0 ? this.#zigzag() : id + (head >> 4);
      const value = this.#value(type, depthLeft - 1);
      if (value !== null) fields.set(id, value);
    }
  }

  #value(type: number, depthLeft: number): number | ThriftStruct | null {
    if (type === TRUE || type === FALSE) return type === TRUE ? 1 : 0;
    if (type === BYTE) return this.#byte();
    if (type === I16 || type === I32 || type === I64) return this.#zigzag();
    if (type === STRUCT) return this.struct(depthLeft);
    if (type === DOUBLE) this.#skip(8);
    else if (type === BINARY) this.#skip(this.#varint());
    else if (type === LIST) this.#list(depthLeft);
    else throw new SegmentError(`has a Thrift value of type ${type}`);
    return null;
  }

  /** Every element takes at least one byte, so a valid list is no longer than what remains. */
  #list(depthLeft: number): void {
    const head = this.#byte();
    const type = head & 0x0f;
    const size = head >> 4 === 0x0f ? this.#varint() : head >> 4;
    if (size > this.#bytes.length - this.at || depthLeft === 0) {
      throw new SegmentError(`has a Thrift list of ${size} elements at byte ${this.at}`);
    }
    const isBoolean = type === TRUE || type === FALSE;
    for (let element = 0; element < size; element++) {
      this.#value(isBoolean ? BYTE : type, depthLeft - 1);
    }
  }

  #zigzag(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  #varint(): number {
    let value = 0;
    for (let place = 0; place < VARINT_BYTES_MAX; place++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** (7 * place);
      if (byte < 0x80) return value;
    }
    throw new SegmentError(`has a Thrift integer that is too long at byte ${this.at}`);
  }

  #byte(): number {
    this.#skip(1);
    return this.#bytes[this.at - 1]!;
  }

  #skip(sizeBytes: number): void {
    this.at += sizeBytes;
    if (this.at > this.#bytes.length) throw new SegmentError("has truncated Thrift");
  }
}
