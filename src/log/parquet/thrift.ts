/**
 * Parses Thrift's compact protocol (apache/thrift, doc/specs/thrift-compact-protocol.md) within
 * bounds. `hyparquet` trusts the sizes that it reads, so a crafted list could make it allocate
 * gigabytes. It only gets structures that were parsed here first.
 */
import { SegmentError } from "../storage/errors.ts";

/** Integers and structures in a structure, by field id. Other values are checked, and null. */
export type ThriftStruct = Map<number, number | ThriftStruct | null>;

/** Maximum nesting depth; a Parquet footer has 6 levels. */
const DEPTH_MAX = 12;
/** Maximum number of values, which `hyparquet` keeps; a footer has about 500 per row group. */
const VALUES_MAX = 2 ** 20;
/** Maximum size of a 64-bit integer. */
const VARINT_BYTES_MAX = 10;
/** Maximum id of a field: a 16-bit integer. */
const FIELD_ID_MAX = 0x7fff;

/** The types that Parquet uses. */
const STOP = 0;
const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const I16 = 4;
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
  let at = start;
  let valuesLeft = VALUES_MAX;
  const struct = readStruct(DEPTH_MAX);
  return { struct, end: at };

  function readStruct(depthLeft: number): ThriftStruct {
    if (depthLeft === 0) throw new SegmentError("has a Thrift structure that is nested too deeply");
    const fields: ThriftStruct = new Map();
    for (let id = 0;;) {
      const head = bytes[skip(1)]!;
      const type = head & 0x0f;
      if (type === STOP) return fields;
      id = head >> 4 === 0 ? readZigzag() : id + (head >> 4);
      if (!(id > 0 && id <= FIELD_ID_MAX)) throw new SegmentError(`has a Thrift field ${id}`);
      if (fields.has(id)) throw new SegmentError(`has the Thrift field ${id} twice`);
      fields.set(id, readValue(type, depthLeft - 1));
    }
  }

  function readValue(type: number, depthLeft: number): number | ThriftStruct | null {
    if (valuesLeft-- === 0) throw new SegmentError(`has more than ${VALUES_MAX} Thrift values`);
    if (type === TRUE || type === FALSE) return type === TRUE ? 1 : 0;
    if (type === BYTE) return bytes[skip(1)]! << 24 >> 24;
    if (type >= I16 && type <= I64) return readZigzag();
    if (type === STRUCT) return readStruct(depthLeft);
    if (type === DOUBLE) skip(8);
    else if (type === BINARY) skip(readVarint());
    else if (type === LIST) skipList(depthLeft);
    else throw new SegmentError(`has a Thrift value of type ${type}`);
    return null;
  }

  /** Every element takes at least one byte, so a valid list is no longer than what remains. */
  function skipList(depthLeft: number): void {
    const head = bytes[skip(1)]!;
    const type = head & 0x0f;
    const size = head >> 4 === 0x0f ? readVarint() : head >> 4;
    if (size > bytes.length - at || depthLeft === 0) {
      throw new SegmentError(`has a Thrift list of ${size} elements at byte ${at}`);
    }
    const elementType = type === TRUE || type === FALSE ? BYTE : type;
    for (let element = 0; element < size; element++) readValue(elementType, depthLeft - 1);
  }

  function readZigzag(): number {
    const value = readVarint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  function readVarint(): number {
    let value = 0;
    for (let place = 0; place < VARINT_BYTES_MAX; place++) {
      const byte = bytes[skip(1)]!;
      value += (byte & 0x7f) * 2 ** (7 * place);
      if (byte < 0x80) return value;
    }
    throw new SegmentError(`has a Thrift integer that is too long at byte ${at}`);
  }

  /** Returns the offset of the bytes skipped. */
  function skip(sizeBytes: number): number {
    at += sizeBytes;
    if (at > bytes.length) throw new SegmentError("has truncated Thrift");
    return at - sizeBytes;
  }
}
