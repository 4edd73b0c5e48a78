/**
 * Thrift's compact protocol (apache/thrift, doc/specs/thrift-compact-protocol.md), which encodes
 * Parquet's page headers, indexes and footer. A struct is declared once, as a table of its fields
 * (`parquet_format.ts`).
 *
 * Safe for untrusted input: lengths are checked against the input, nesting and the number of items
 * are bounded, and malformed input throws SegmentError. Undeclared fields are skipped.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { SegmentError } from "./segment_error.ts";

/** Type codes in field and list headers. */
const STOP = 0;
const TRUE = 1;
const FALSE = 2;
const I32 = 5;
const I64 = 6;
const BINARY = 8;
const LIST = 9;
const STRUCT = 12;

const VARINT_BYTES_MAX = 10;
/** Lists of at least this many items store their size after the header. */
const LONG_LIST = 15;
/** Largest field id delta in a short field header. */
const FIELD_STEP_MAX = 15;
/** Maximum nesting; Parquet's own structs nest up to ten levels deep. */
const DEPTH_MAX = 16;
/** Maximum number of list items: four times as many as in the largest footer. */
const ITEMS_MAX = 128 * 1024;

/** A type and its encoding. */
export interface ThriftType<Value> {
  number: number;
  write(out: number[], value: Value): void;
  read(input: Input): Value;
}

export const bool: ThriftType<boolean> = {
  number: TRUE,
  write: (out, value) => out.push(value ? TRUE : FALSE),
  read: (input) => input.byte() === TRUE,
};

export const i32: ThriftType<number> = integer(I32, -(2 ** 31), 2 ** 31 - 1);
/** A non-negative integer of up to 31 bits; `size64` goes up to Number.MAX_SAFE_INTEGER. */
export const size32: ThriftType<number> = integer(I32, 0, 2 ** 31 - 1);
export const size64: ThriftType<number> = integer(I64, 0, Number.MAX_SAFE_INTEGER);

/** Bytes; decoding returns a view. */
export const binary: ThriftType<Uint8Array> = {
  number: BINARY,
  write(out, value) {
    pushVarint(out, value.length);
    for (const byte of value) out.push(byte);
  },
  read: (input) => input.bytes(),
};

export const text: ThriftType<string> = {
  number: BINARY,
  write: (out, value) => binary.write(out, Buffer.from(value)),
  read: (input) => input.bytes().toString(),
};

function integer(number: number, min: number, max: number): ThriftType<number> {
  return {
    number,
    write: (out, value) => pushVarint(out, value < 0 ? -2 * value - 1 : 2 * value),
    read(input) {
      const value = input.integer();
      if (value < min || value > max) throw malformed(`has an integer out of range: ${value}`);
      return value;
    },
  };
}

/** Declares an enum, whose names are encoded as integers. */
export function choice<Name extends string>(numbers: Record<Name, number>): ThriftType<Name> {
  const names = new Map(Object.entries<number>(numbers).map(([name, n]) => [n, name as Name]));
  return {
    number: I32,
    write: (out, name) => i32.write(out, numbers[name]),
    read(input) {
      const number = input.integer();
      const name = names.get(number);
      if (name === undefined) throw malformed(`has an unknown enum value: ${number}`);
      return name;
    },
  };
}

export function list<Item>(item: ThriftType<Item>): ThriftType<readonly Item[]> {
  return {
    number: LIST,
    write(out, items) {
      out.push(Math.min(items.length, LONG_LIST) << 4 | item.number);
      if (items.length >= LONG_LIST) pushVarint(out, items.length);
      for (const value of items) item.write(out, value);
    },
    read(input) {
      const { type, length } = input.listHeader();
      if (type !== item.number) throw malformed(`has a list of the wrong type: ${type}`);
      const items: Item[] = [];
      while (items.length < length) items.push(item.read(input));
      return items;
    },
  };
}

export interface ThriftField<Value, IsOptional extends boolean> {
  /** The field id. */
  field: number;
  type: ThriftType<Value>;
  isOptional: IsOptional;
}

export function required<Value>(field: number, type: ThriftType<Value>): ThriftField<Value, false> {
  return { field, type, isOptional: false };
}

export function optional<Value>(field: number, type: ThriftType<Value>): ThriftField<Value, true> {
  return { field, type, isOptional: true };
}

// deno-lint-ignore no-explicit-any -- a field can have any type
type Fields = Record<string, ThriftField<any, boolean>>;
type ValueOf<Field> = Field extends ThriftField<infer Value, boolean> ? Value : never;
type NamesOf<F extends Fields, IsOptional extends boolean> = {
  [Name in keyof F]: F[Name]["isOptional"] extends IsOptional ? Name : never;
}[keyof F];
type StructOf<F extends Fields> =
  & { [Name in NamesOf<F, false>]: ValueOf<F[Name]> }
  & { [Name in NamesOf<F, true>]?: ValueOf<F[Name]> | undefined };

/** The TypeScript type of a declared type's values. */
export type ThriftValue<Type> = Type extends ThriftType<infer Value> ? Value : never;

/** @param fields in the order of their field ids. */
export function struct<F extends Fields>(fields: F): ThriftType<StructOf<F>> {
  const entries = Object.entries(fields);
  const byNumber = new Map(entries.map(([name, field]) => [field.field, { name, ...field }]));
  return {
    number: STRUCT,
    write(out, value: Record<string, unknown>) {
      let last = 0;
      for (const [name, { field, type }] of entries) {
        if (value[name] === undefined) continue;
        const step = field - last;
        assert(step > 0 && step <= FIELD_STEP_MAX, "fields must be in order, without gaps");
        // A boolean field encodes its value in the type.
        out.push(step << 4 | (value[name] === false ? FALSE : type.number));
        if (type !== bool) type.write(out, value[name]);
        last = field;
      }
      out.push(STOP);
    },
    read(input) {
      const value: Record<string, unknown> = {};
      input.fields((field, found) => {
        const declared = byNumber.get(field);
        if (declared === undefined) input.skipField(found, DEPTH_MAX);
        else if (declared.type === bool) value[declared.name] = found === TRUE;
        else if (declared.type.number === found) value[declared.name] = declared.type.read(input);
        else throw malformed(`has ${declared.name} of the wrong type: ${found}`);
      });
      for (const [name, { isOptional }] of entries) {
        if (!isOptional && value[name] === undefined) throw malformed(`has no ${name}`);
      }
      return value as StructOf<F>;
    },
  };
}

export function encodeThrift<Value>(type: ThriftType<Value>, value: Value): Buffer {
  const out: number[] = [];
  type.write(out, value);
  return Buffer.from(out);
}

/**
 * Decodes the value at `start`; returns it and its end offset.
 * @throws {SegmentError} if it is malformed or does not end within `bytes`.
 */
export function decodeThrift<Value>(
  type: ThriftType<Value>,
  bytes: Buffer,
  start = 0,
): { value: Value; end: number } {
  const input = new Input(bytes, start);
  const value = type.read(input);
  return { value, end: input.at };
}

class Input {
  readonly #bytes: Buffer;
  #items = 0;
  /** Offset of the next byte. */
  at: number;

  constructor(bytes: Buffer, start: number) {
    this.#bytes = bytes;
    this.at = start;
  }

  byte(): number {
    if (this.at >= this.#bytes.length) throw malformed("is truncated");
    return this.#bytes[this.at++]!;
  }

  /** Reads a zigzag-encoded signed integer. */
  integer(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  bytes(): Buffer {
    const sizeBytes = this.#varint();
    if (sizeBytes > this.#bytes.length - this.at) {
      throw malformed(`has a ${sizeBytes}-byte value that extends past its end`);
    }
    this.at += sizeBytes;
    return this.#bytes.subarray(this.at - sizeBytes, this.at);
  }

  listHeader(): { type: number; length: number } {
    const header = this.byte();
    const length = header >> 4 === LONG_LIST ? this.#varint() : header >> 4;
    this.#items += length;
    // Every item takes at least one byte.
    if (length > this.#bytes.length - this.at || this.#items > ITEMS_MAX) {
      throw malformed(`has a list of ${length} items, which is too long`);
    }
    return { type: header & 0xf, length };
  }

  /** Calls `take`, which must read or skip the value, for each field in a struct. */
  fields(take: (field: number, type: number) => void): void {
    let field = 0;
    for (let header = this.byte(); (header & 0xf) !== STOP; header = this.byte()) {
      // The writer never uses the long form with an absolute field id.
      if (header >> 4 === 0) throw malformed("has fields out of order");
      field += header >> 4;
      take(field, header & 0xf);
    }
  }

  /** Skips a field's value. A boolean's value is encoded in its type. */
  skipField(type: number, depthMax: number): void {
    if (type !== TRUE && type !== FALSE) this.#skip(type, depthMax);
  }

  #skip(type: number, depthMax: number): void {
    if (depthMax === 0) throw malformed("is nested too deeply");
    switch (type) {
      case TRUE:
      case FALSE:
        this.byte();
        break;
      case I32:
      case I64:
        this.#varint();
        break;
      case BINARY:
        this.bytes();
        break;
      case LIST: {
        const { type: itemType, length } = this.listHeader();
        for (let item = 0; item < length; item++) this.#skip(itemType, depthMax - 1);
        break;
      }
      case STRUCT:
        this.fields((_, fieldType) => this.skipField(fieldType, depthMax - 1));
        break;
      default:
        throw malformed(`has a value of unknown type ${type}`);
    }
  }

  #varint(): number {
    let value = 0;
    for (let i = 0; i < VARINT_BYTES_MAX; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte >= 0x80) continue;
      if (!Number.isSafeInteger(value)) throw malformed("has a number out of range");
      return value;
    }
    throw malformed("has a number that is too long");
  }
}

function pushVarint(out: number[], value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out.push(rest & 0x7f | 0x80);
  out.push(rest);
}

function malformed(fault: string): SegmentError {
  return new SegmentError(`a Thrift struct ${fault}`);
}
