/**
 * Encodes dictionary indices or definition levels as one bit-packed run of Parquet's RLE /
 * bit-packed hybrid (parquet-format, Encodings.md, RLE = 3). No RLE runs are written, since
 * compression shrinks runs of equal indices anyway.
 */
import { Buffer } from "node:buffer";
import { SegmentError } from "./segment_error.ts";

const GROUP_VALUES = 8;
/** Maximum bit width. A dictionary has at most as many values as a row group has rows. */
const BIT_WIDTH_MAX = 16;

/** Encodes values of `bitWidth` bits each; the last group is padded with zeros. */
export function encodeBitPacked(values: ArrayLike<number>, bitWidth: number): Buffer {
  const out = [...runHeader(values.length)];
  const groups = Math.ceil(values.length / GROUP_VALUES);
  let bits = 0;
  let bitCount = 0;
  for (let at = 0; at < groups * GROUP_VALUES; at++) {
    bits |= (values[at] ?? 0) << bitCount;
    bitCount += bitWidth;
    for (; bitCount >= 8; bitCount -= 8) {
      out.push(bits & 0xff);
      bits >>>= 8;
    }
  }
  return Buffer.from(out);
}

/**
 * Decodes `bytes`, exactly `count` values of `bitWidth` bits each.
 * @throws {SegmentError} if the run is malformed.
 */
export function decodeBitPacked(bytes: Uint8Array, count: number, bitWidth: number): Uint16Array {
  const header = runHeader(count);
  // A group of eight values takes as many bytes as a value has bits.
  const sizeBytes = header.length + Math.ceil(count / GROUP_VALUES) * bitWidth;
  const isRun = bitWidth <= BIT_WIDTH_MAX && bytes.length === sizeBytes &&
    header.every((byte, i) => bytes[i] === byte);
  if (!isRun) throw new SegmentError("malformed bit-packed run");
  const values = new Uint16Array(count);
  const mask = (1 << bitWidth) - 1;
  let at = header.length;
  let bits = 0;
  let bitCount = 0;
  for (let i = 0; i < count; i++) {
    for (; bitCount < bitWidth; bitCount += 8) bits |= bytes[at++]! << bitCount;
    values[i] = bits & mask;
    bits >>>= bitWidth;
    bitCount -= bitWidth;
  }
  return values;
}

/** Returns a run's header: a varint with the number of groups and the bit-packed flag. */
function runHeader(count: number): number[] {
  const header = Math.ceil(count / GROUP_VALUES) << 1 | 1;
  return header < 0x80 ? [header] : [header & 0x7f | 0x80, header >> 7];
}
