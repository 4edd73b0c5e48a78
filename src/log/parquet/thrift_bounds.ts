/**
 * Walks over a struct in Thrift's compact protocol (thrift-compact-protocol.md) and checks that all
 * in it lies within its bytes, so that the Parquet library, which trusts the sizes it reads, can be
 * given any file: no list is longer than the bytes that are left, and nothing nests without end.
 */
import { SegmentError } from "./segment_error.ts";

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

/** Parquet's own structs nest to ten. */
const DEPTH_MAX = 16;
const DOUBLE_BYTES = 8;
/** Bytes of the longest number, and of the longest size. */
const VARINT_BYTES_MAX = 10;
const SIZE_BYTES_MAX = 5;
/** A list of fifteen or more items has its size behind the header. */
const LONG_LIST = 15;

/**
 * Where the struct ends that starts at `start`.
 * @throws {SegmentError} when it is malformed or does not end before `end`.
 */
export function thriftStructEnd(bytes: Uint8Array, start: number, end: number): number {
  return new Walk(bytes, start, end).struct(DEPTH_MAX);
}

/**
 * Where a field of that struct has its value; null when the struct ends without it. What stands
 * behind the value is not looked at.
 * @throws {SegmentError} when what stands before is malformed or does not end before `end`.
 */
export function thriftFieldStart(
  bytes: Uint8Array,
  start: number,
  end: number,
  field: number,
): number | null {
  return new Walk(bytes, start, end).field(field);
}

/** A value of known length whose own header has been read. */
export interface ThriftBinary {
  start: number;
  end: number;
}

/**
 * Where the bytes of a binary value are whose length stands at `start`. They may lie beyond `end`.
 * @throws {SegmentError} when the length is malformed.
 */
export function thriftBinary(bytes: Uint8Array, start: number, end: number): ThriftBinary {
  return new Walk(bytes, start, end).binary();
}

class Walk {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  struct(depthMax: number): number {
    if (depthMax === 0) throw malformed("nests too deep");
    for (;;) {
      const header = this.#byte();
      const type = header & 0xf;
      if (type === STOP) return this.#at;
      if (header >> 4 === 0) this.#varint();
      this.#value(type, depthMax);
    }
  }

  field(wanted: number): number | null {
    let last = 0;
    for (;;) {
      const header = this.#byte();
      const type = header & 0xf;
      if (type === STOP) return null;
      // A number that does not follow from the one before is never used by what writes these.
      if (header >> 4 === 0) throw malformed("has fields out of order");
      last += header >> 4;
      if (last === wanted) return this.#at;
      this.#value(type, DEPTH_MAX);
    }
  }

  binary(): ThriftBinary {
    const sizeBytes = this.#size();
    return { start: this.#at, end: this.#at + sizeBytes };
  }

  #value(type: number, depthMax: number): void {
    switch (type) {
      // A boolean field has its value in the type.
      case TRUE:
      case FALSE:
        return;
      case BYTE:
        return this.#skip(1);
      case I16:
      case I32:
      case I64:
        return this.#varint();
      case DOUBLE:
        return this.#skip(DOUBLE_BYTES);
      case BINARY:
        return this.#skip(this.#size());
      case LIST:
        return this.#list(depthMax - 1);
      case STRUCT:
        this.struct(depthMax - 1);
        return;
      default:
        throw malformed(`has a value of the unknown type ${type}`);
    }
  }

  #list(depthMax: number): void {
    if (depthMax === 0) throw malformed("nests too deep");
    const header = this.#byte();
    const type = header & 0xf;
    const items = header >> 4 === LONG_LIST ? this.#size() : header >> 4;
    // Every item takes at least a byte.
    if (items > this.#end - this.#at) throw malformed(`has a list of ${items} items`);
    const isBoolean = type === TRUE || type === FALSE;
    for (let item = 0; item < items; item++) this.#value(isBoolean ? BYTE : type, depthMax);
  }

  #size(): number {
    let size = 0;
    for (let i = 0; i < SIZE_BYTES_MAX; i++) {
      const byte = this.#byte();
      size += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return size;
    }
    throw malformed("has a size without end");
  }

  #varint(): void {
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      if (this.#byte() < 0x80) return;
    }
    throw malformed("has a number without end");
  }

  #byte(): number {
    if (this.#at >= this.#end) throw malformed("does not end");
    return this.#bytes[this.#at++]!;
  }

  #skip(sizeBytes: number): void {
    if (sizeBytes > this.#end - this.#at) throw malformed(`has a value of ${sizeBytes} bytes`);
    this.#at += sizeBytes;
  }
}

function malformed(fault: string): SegmentError {
  return new SegmentError(`a Thrift struct ${fault}`);
}
