/**
 * Reads and writes structs in Thrift's compact protocol (apache/thrift,
 * doc/specs/thrift-compact-protocol.md), the form of Parquet's page headers, indexes and footer.
 *
 * A reader may be given any bytes: no length is believed beyond the bytes that are there, nesting
 * and the number of values are bounded, and whatever is malformed throws SegmentError. Integers are
 * numbers; one that a number can't hold is malformed too.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { SegmentError } from "./segment_error.ts";

const STOP = 0;
const BOOLEAN_TRUE = 1;
const BOOLEAN_FALSE = 2;
const I32 = 5;
const I64 = 6;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;

const VARINT_BYTES_MAX = 10;
/** A list of fifteen or more items has its size behind the header. */
const LONG_LIST = 15;
/** Most that a field's number is above the one before, in the short form of a field header. */
const FIELD_STEP_MAX = 15;

/** Parquet's own structs nest to ten. */
const DEPTH_MAX = 16;
/** No struct has it. */
const NO_FIELD = 0;
/** Parquet's own fields go up to 17. */
const FIELD_NUMBER_MAX = 63;
/** The footer of the largest segment has a quarter of this; bounds the memory of a hostile one. */
const VALUES_MAX = 512 * 1024;

/** A value that has been read. */
export type ThriftValue = number | boolean | Buffer | ThriftValue[] | ThriftStruct;

/** A struct that has been read. Fields that are absent or of another type throw SegmentError. */
export class ThriftStruct {
  /** The values by field number: two structs are equal when these are. */
  readonly fields: readonly ThriftValue[];

  constructor(fields: readonly ThriftValue[]) {
    this.fields = fields;
  }

  has(field: number): boolean {
    return this.fields[field] !== undefined;
  }

  int(field: number): number {
    const value = this.fields[field];
    if (typeof value !== "number") throw malformed(`has no integer as field ${field}`);
    return value;
  }

  bool(field: number): boolean {
    const value = this.fields[field];
    if (typeof value !== "boolean") throw malformed(`has no boolean as field ${field}`);
    return value;
  }

  /** A view of the bytes that were read. */
  bytes(field: number): Buffer {
    const value = this.fields[field];
    if (!Buffer.isBuffer(value)) throw malformed(`has no bytes as field ${field}`);
    return value;
  }

  struct(field: number): ThriftStruct {
    const value = this.fields[field];
    if (!(value instanceof ThriftStruct)) throw malformed(`has no struct as field ${field}`);
    return value;
  }

  list(field: number): readonly ThriftValue[] {
    const value = this.fields[field];
    if (!Array.isArray(value)) throw malformed(`has no list as field ${field}`);
    return value;
  }

  structs(field: number): readonly ThriftStruct[] {
    const list = this.list(field);
    const isRight = list.every((item) => item instanceof ThriftStruct);
    if (!isRight) throw malformed(`has no list of structs as field ${field}`);
    return list as readonly ThriftStruct[];
  }
}

/**
 * Reads the struct that starts at `start`; returns it and where it ends.
 * @param only the one of its fields that is read, if the others are to be passed over.
 * @throws {SegmentError} when it is malformed or does not end within `bytes`.
 */
export function readThrift(
  bytes: Buffer,
  start = 0,
  only?: number,
): { struct: ThriftStruct; end: number } {
  const reader = new Reader(bytes, start);
  const struct = reader.struct(DEPTH_MAX, only);
  return { struct, end: reader.at };
}

class Reader {
  readonly #bytes: Buffer;
  #values = 0;
  /** Where the next byte is. */
  at: number;

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes;
    this.at = start;
  }

  struct(depthMax: number, only?: number): ThriftStruct {
    if (depthMax === 0) throw malformed("nests too deep");
    const fields: ThriftValue[] = [];
    let field = 0;
    for (;;) {
      const header = this.#byte();
      const type = header & 0xf;
      if (type === STOP) return new ThriftStruct(fields);
      // A number that does not follow from the one before is never used by what writes these.
      if (header >> 4 === 0) throw malformed("has fields out of order");
      field += header >> 4;
      if (field > FIELD_NUMBER_MAX) throw malformed(`has the unknown field ${field}`);
      // A boolean field has its value in the type.
      const isBoolean = type === BOOLEAN_TRUE || type === BOOLEAN_FALSE;
      if (only !== undefined && field !== only) {
        if (!isBoolean) this.#skip(type, depthMax);
      } else {
        fields[field] = isBoolean ? type === BOOLEAN_TRUE : this.#value(type, depthMax);
      }
    }
  }

  #value(type: number, depthMax: number): ThriftValue {
    if (++this.#values > VALUES_MAX) throw malformed(`has more than ${VALUES_MAX} values`);
    switch (type) {
      case BOOLEAN_TRUE:
      case BOOLEAN_FALSE:
        return this.#byte() === BOOLEAN_TRUE;
      case I32:
      case I64:
        return this.#int();
      case BINARY:
        return this.#take(this.#varint());
      case LIST:
        return this.#list(depthMax - 1);
      case STRUCT:
        return this.struct(depthMax - 1);
      default:
        throw malformed(`has a value of the unknown type ${type}`);
    }
  }

  #list(depthMax: number): ThriftValue[] {
    const { type, items } = this.#listHeader(depthMax);
    const list: ThriftValue[] = [];
    for (let item = 0; item < items; item++) list.push(this.#value(type, depthMax));
    return list;
  }

  #listHeader(depthMax: number): { type: number; items: number } {
    if (depthMax === 0) throw malformed("nests too deep");
    const header = this.#byte();
    const items = header >> 4 === LONG_LIST ? this.#varint() : header >> 4;
    // Every item takes at least a byte.
    if (items > this.#bytes.length - this.at) throw malformed(`has a list of ${items} items`);
    return { type: header & 0xf, items };
  }

  /** Passes over a value; lists and structs may hold most of the bytes. */
  #skip(type: number, depthMax: number): void {
    if (type === LIST) {
      const { type: itemType, items } = this.#listHeader(depthMax - 1);
      for (let item = 0; item < items; item++) this.#skip(itemType, depthMax - 1);
    } else if (type === STRUCT) {
      this.struct(depthMax - 1, NO_FIELD);
    } else {
      this.#value(type, depthMax);
    }
  }

  /** A signed integer, zigzag encoded. */
  #int(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  #varint(): number {
    let value = 0;
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte >= 0x80) continue;
      if (!Number.isSafeInteger(value)) throw malformed("has a number out of bounds");
      return value;
    }
    throw malformed("has a number without end");
  }

  #byte(): number {
    if (this.at >= this.#bytes.length) throw malformed("does not end");
    return this.#bytes[this.at++]!;
  }

  #take(sizeBytes: number): Buffer {
    if (sizeBytes > this.#bytes.length - this.at) {
      throw malformed(`has a value of ${sizeBytes} bytes`);
    }
    this.at += sizeBytes;
    return this.#bytes.subarray(this.at - sizeBytes, this.at);
  }
}

function malformed(fault: string): SegmentError {
  return new SegmentError(`a Thrift struct ${fault}`);
}

/** A value to be written, with its type. */
export type ThriftItem =
  | { type: typeof BOOLEAN_TRUE; value: boolean }
  | { type: typeof I32 | typeof I64; value: number }
  | { type: typeof BINARY; value: Uint8Array }
  | { type: typeof LIST; value: readonly ThriftItem[] }
  | { type: typeof STRUCT; value: ThriftFields };

/** The fields of a struct to be written, by their numbers; those undefined are left out. */
export interface ThriftFields {
  readonly [field: number]: ThriftItem | undefined;
}

export const TRUE: ThriftItem = { type: BOOLEAN_TRUE, value: true };
export const FALSE: ThriftItem = { type: BOOLEAN_TRUE, value: false };

export function i32(value: number): ThriftItem {
  return { type: I32, value };
}

export function i64(value: number): ThriftItem {
  return { type: I64, value };
}

export function binary(value: Uint8Array | string): ThriftItem {
  return { type: BINARY, value: typeof value === "string" ? Buffer.from(value) : value };
}

/** @param value items of one type, at least one: the type of an empty list is not known. */
export function list(value: readonly ThriftItem[]): ThriftItem {
  return { type: LIST, value };
}

export function struct(value: ThriftFields): ThriftItem {
  return { type: STRUCT, value };
}

/** The bytes of a struct. */
export function encodeThrift(fields: ThriftFields): Buffer {
  const out: number[] = [];
  pushStruct(out, fields);
  return Buffer.from(out);
}

function pushStruct(out: number[], fields: ThriftFields): void {
  let last = 0;
  // An object has its integer keys in ascending order.
  for (const [key, item] of Object.entries(fields) as [string, ThriftItem | undefined][]) {
    if (item === undefined) continue;
    const field = Number(key);
    assert(field - last <= FIELD_STEP_MAX, "Parquet numbers its fields without large gaps");
    const type = item.type === BOOLEAN_TRUE && !item.value ? BOOLEAN_FALSE : item.type;
    out.push(field - last << 4 | type);
    if (type !== BOOLEAN_TRUE && type !== BOOLEAN_FALSE) pushValue(out, item);
    last = field;
  }
  out.push(STOP);
}

function pushValue(out: number[], item: ThriftItem): void {
  switch (item.type) {
    case BOOLEAN_TRUE:
      out.push(item.value ? BOOLEAN_TRUE : BOOLEAN_FALSE);
      break;
    case I32:
    case I64:
      pushVarint(out, item.value < 0 ? -2 * item.value - 1 : 2 * item.value);
      break;
    case BINARY:
      pushVarint(out, item.value.length);
      for (const byte of item.value) out.push(byte);
      break;
    case LIST:
      pushList(out, item.value);
      break;
    case STRUCT:
      pushStruct(out, item.value);
      break;
  }
}

function pushList(out: number[], items: readonly ThriftItem[]): void {
  const type = items[0]?.type;
  assert(type !== undefined && items.every((item) => item.type === type), "items of one type");
  out.push(Math.min(items.length, LONG_LIST) << 4 | type);
  if (items.length >= LONG_LIST) pushVarint(out, items.length);
  for (const item of items) pushValue(out, item);
}

function pushVarint(out: number[], value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out.push(rest & 0x7f | 0x80);
  out.push(rest);
}
