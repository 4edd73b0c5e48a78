/** Parses Thrift's compact protocol into a tree that a test can change and encode. */
import { Buffer } from "node:buffer";

export const BYTE = 3;
export const I32 = 5;
export const I64 = 6;
export const DOUBLE = 7;
export const BINARY = 8;
export const LIST = 9;
export const STRUCT = 12;

/** A value: an integer, the bytes of a double or a binary, a list, or a structure. */
export type ThriftValue = bigint | Buffer | ThriftList | ThriftField[];

export interface ThriftList {
  type: number;
  items: ThriftValue[];
  /** The size that the list claims. Default: the number of items. */
  size?: bigint;
}

export interface ThriftField {
  id: number;
  /** 1 and 2 are the booleans, which have no value. */
  type: number;
  value: ThriftValue;
}

/** Parses the structure at `start`. */
export function parseTree(bytes: Buffer, start: number): { fields: ThriftField[]; end: number } {
  let at = start;
  const fields = readStruct();
  return { fields, end: at };

  function readStruct(): ThriftField[] {
    const fields: ThriftField[] = [];
    for (let id = 0;;) {
      const head = bytes.readUInt8(at++);
      if (head === 0) return fields;
      id += head >> 4;
      fields.push({ id, type: head & 0xf, value: readValue(head & 0xf) });
    }
  }

  function readValue(type: number): ThriftValue {
    if (type <= 2) return 0n;
    if (type === STRUCT) return readStruct();
    if (type === BINARY) return take(Number(readVarint()));
    if (type === DOUBLE) return take(8);
    if (type !== LIST) return zigzag(readVarint());
    const head = bytes.readUInt8(at++);
    const size = head >> 4 === 0xf ? Number(readVarint()) : head >> 4;
    const items = Array.from({ length: size }, () => readValue(Math.max(BYTE, head & 0xf)));
    return { type: head & 0xf, items };
  }

  function take(sizeBytes: number): Buffer {
    at += sizeBytes;
    return Buffer.from(bytes.subarray(at - sizeBytes, at));
  }

  function readVarint(): bigint {
    let value = 0n;
    for (let shift = 0n;; shift += 7n) {
      const byte = BigInt(bytes.readUInt8(at++));
      value |= (byte & 0x7fn) << shift;
      if (byte < 0x80n) return value;
    }
  }
}

export function encodeTree(fields: readonly ThriftField[]): Buffer {
  const pieces: Buffer[] = [];
  let last = 0;
  for (const { id, type, value } of fields) {
    const delta = id - last;
    const isShort = delta > 0 && delta < 16;
    pieces.push(Buffer.of((isShort ? delta << 4 : 0) | type));
    if (!isShort) pieces.push(varint(unzigzag(BigInt(id))));
    pieces.push(encodeValue(type, value));
    last = id;
  }
  return Buffer.concat([...pieces, Buffer.of(0)]);
}

function encodeValue(type: number, value: ThriftValue): Buffer {
  if (type <= 2) return Buffer.alloc(0);
  if (Array.isArray(value)) return encodeTree(value);
  if (typeof value === "bigint") {
    return type === BYTE ? Buffer.of(Number(value & 0xffn)) : varint(unzigzag(value));
  }
  if (Buffer.isBuffer(value)) {
    return type === BINARY ? Buffer.concat([varint(BigInt(value.length)), value]) : value;
  }
  const { type: itemType, items, size = BigInt(items.length) } = value;
  const isShort = size >= 0n && size < 15n;
  const head: Buffer[] = [Buffer.of((isShort ? Number(size) << 4 : 0xf0) | itemType)];
  if (!isShort) head.push(varint(size));
  const kind = Math.max(BYTE, itemType);
  return Buffer.concat([...head, ...items.map((item) => encodeValue(kind, item))]);
}

/** Encodes an unsigned integer. */
export function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, value);
  for (; left >= 0x80n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  return Buffer.of(...bytes, Number(left));
}

function zigzag(value: bigint): bigint {
  return value >> 1n ^ -(value & 1n);
}

function unzigzag(value: bigint): bigint {
  return BigInt.asUintN(64, value << 1n ^ value >> 63n);
}

export function fieldOf(fields: readonly ThriftField[], id: number): ThriftField {
  const field = fields.find((candidate) => candidate.id === id);
  if (field === undefined) throw new Error(`no Thrift field ${id}`);
  return field;
}

/** Replaces a value, or adds the field. */
export function setField(
  fields: ThriftField[],
  id: number,
  type: number,
  value: ThriftValue,
): void {
  const others = fields.filter((field) => field.id !== id);
  others.push({ id, type, value });
  fields.splice(0, fields.length, ...others.sort((a, b) => a.id - b.id));
}

/** Returns the structure in a field. */
export function structAt(fields: readonly ThriftField[], id: number): ThriftField[] {
  return fieldOf(fields, id).value as ThriftField[];
}

/** Returns the structures in a list. */
export function structsIn(fields: readonly ThriftField[], id: number): ThriftField[][] {
  return (fieldOf(fields, id).value as ThriftList).items as ThriftField[][];
}
