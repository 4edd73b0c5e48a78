/**
 * Parquet's RLE / bit-packed hybrid (parquet-format, Encodings.md, RLE = 3), the encoding of
 * dictionary indices and definition levels.
 */
import { Buffer } from "node:buffer";
import { SegmentError } from "./segment_error.ts";

/** Values in a group of a bit-packed run. */
const GROUP_VALUES = 8;
/** Widest value that is decoded: a dictionary has at most as many values as a row group rows. */
const BIT_WIDTH_MAX = 16;
const VARINT_BYTES_MAX = 5;

/** Encodes values of `bitWidth` bits each. */
export function encodeRleHybrid(values: ArrayLike<number>, bitWidth: number): Buffer {
  const out: number[] = [];
  /** Start of the values that are not written yet and will be bit-packed. */
  let packedStart = 0;
  let at = 0;
  while (at < values.length) {
    const runEnd = endOfRun(values, at);
    if (runEnd - at < GROUP_VALUES) {
      // A group is packed whole, even when a run begins in it.
      at += GROUP_VALUES;
      continue;
    }
    pushPacked(out, values, packedStart, at, bitWidth);
    pushVarint(out, runEnd - at << 1);
    pushBytes(out, values[at]!, bitWidth);
    at = packedStart = runEnd;
  }
  pushPacked(out, values, packedStart, at, bitWidth);
  return Buffer.from(out);
}

function endOfRun(values: ArrayLike<number>, start: number): number {
  let end = start + 1;
  while (end < values.length && values[end] === values[start]) end += 1;
  return end;
}

/** Packs the values in [start, end), whole groups; the last one is padded with zeros. */
function pushPacked(
  out: number[],
  values: ArrayLike<number>,
  start: number,
  end: number,
  bitWidth: number,
): void {
  if (start === end) return;
  pushVarint(out, (end - start) / GROUP_VALUES << 1 | 1);
  let bits = 0;
  let bitCount = 0;
  for (let at = start; at < end; at++) {
    bits |= (values[at] ?? 0) << bitCount;
    bitCount += bitWidth;
    for (; bitCount >= 8; bitCount -= 8) {
      out.push(bits & 0xff);
      bits >>>= 8;
    }
  }
}

/** Writes the bytes that hold `bitWidth` bits, the lowest first. */
function pushBytes(out: number[], value: number, bitWidth: number): void {
  for (let shift = 0; shift < bitWidth; shift += 8) out.push(value >>> shift & 0xff);
}

function pushVarint(out: number[], value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) out.push(rest & 0x7f | 0x80);
  out.push(rest);
}

/**
 * Decodes `values` from the bytes in [start, end), `bitWidth` bits each.
 * @returns where the runs end.
 * @throws {SegmentError} when the bytes end first, or a run continues past the last value.
 */
export function decodeRleHybrid(
  bytes: Uint8Array,
  start: number,
  end: number,
  bitWidth: number,
  values: Uint16Array,
): number {
  if (bitWidth > BIT_WIDTH_MAX) throw malformed();
  let at = start;
  let filled = 0;
  while (filled < values.length) {
    const header = readVarint(bytes, at, end);
    at = header.end;
    const count = header.value >>> 1;
    if ((header.value & 1) === 0) {
      const valueBytes = bitWidth + 7 >> 3;
      if (at + valueBytes > end || count === 0 || count > values.length - filled) throw malformed();
      let value = 0;
      for (let i = 0; i < valueBytes; i++) value |= bytes[at + i]! << 8 * i;
      values.fill(value, filled, filled + count);
      at += valueBytes;
      filled += count;
    } else {
      const wanted = values.length - filled;
      if (count === 0 || count > end || (count - 1) * GROUP_VALUES >= wanted) throw malformed();
      if (at + count * bitWidth > end) throw malformed();
      const unpacked = Math.min(count * GROUP_VALUES, wanted);
      unpackBits(bytes, at, bitWidth, values, filled, unpacked);
      // A group of eight values has as many bytes as a value has bits.
      at += count * bitWidth;
      filled += unpacked;
    }
  }
  return at;
}

function unpackBits(
  bytes: Uint8Array,
  start: number,
  bitWidth: number,
  values: Uint16Array,
  from: number,
  count: number,
): void {
  const mask = (1 << bitWidth) - 1;
  let at = start;
  let buffer = 0;
  let bufferBits = 0;
  for (let i = 0; i < count; i++) {
    while (bufferBits < bitWidth) {
      buffer |= bytes[at++]! << bufferBits;
      bufferBits += 8;
    }
    values[from + i] = buffer & mask;
    buffer >>>= bitWidth;
    bufferBits -= bitWidth;
  }
}

function readVarint(
  bytes: Uint8Array,
  start: number,
  end: number,
): { value: number; end: number } {
  let value = 0;
  for (let i = 0; i < VARINT_BYTES_MAX && start + i < end; i++) {
    const byte = bytes[start + i]!;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80 && value < 2 ** 32) return { value, end: start + i + 1 };
  }
  throw malformed();
}

function malformed(): SegmentError {
  return new SegmentError("malformed RLE / bit-packed runs");
}
