/**
 * Encodes Parquet's RLE / bit-packed hybrid (parquet-format, Encodings.md, RLE = 3): the form of
 * dictionary indices and definition levels.
 */
import { Buffer } from "node:buffer";

/** A bit-packed run comes in groups of so many values. */
const GROUP_VALUES = 8;

/** The runs of some values, `bitWidth` bits each. */
export function encodeRleHybrid(values: ArrayLike<number>, bitWidth: number): Buffer {
  const out: number[] = [];
  /** Where the values start that are to be bit-packed. */
  let packedStart = 0;
  let at = 0;
  while (at < values.length) {
    const runEnd = endOfRun(values, at);
    if (runEnd - at < GROUP_VALUES) {
      // A group is packed as a whole, whatever begins in it.
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

/** Values in [start, end), whole groups of them; those behind the last value are 0. */
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

/** The lowest byte first, as many as hold `bitWidth` bits. */
function pushBytes(out: number[], value: number, bitWidth: number): void {
  for (let shift = 0; shift < bitWidth; shift += 8) out.push(value >>> shift & 0xff);
}

function pushVarint(out: number[], value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) out.push(rest & 0x7f | 0x80);
  out.push(rest);
}
