/**
 * Decodes Parquet's hybrid of run lengths and bit packing (parquet-format, Encodings.md, RLE = 3):
 * the form of dictionary codes and definition levels.
 */
import { SegmentError } from "./segment_error.ts";

/** Widest code: a dictionary has no more values than a row group rows. */
const CODE_BITS_MAX = 16;

/** A bit-packed run comes in groups of so many values. */
const GROUP_VALUES = 8;
const VARINT_BYTES_MAX = 5;

/**
 * Fills `codes` from the bytes in [start, end), `bitWidth` bits a code; returns where the runs end.
 * @throws {SegmentError} when the bytes end first, or a run goes on past the last code.
 */
export function decodeRunLengths(
  bytes: Uint8Array,
  start: number,
  end: number,
  bitWidth: number,
  codes: Uint16Array,
): number {
  if (bitWidth > CODE_BITS_MAX) throw malformed();
  let at = start;
  let filled = 0;
  while (filled < codes.length) {
    const header = readVarint(bytes, at, end);
    at = header.end;
    const count = header.value >>> 1;
    if ((header.value & 1) === 0) {
      const valueBytes = bitWidth + 7 >> 3;
      if (at + valueBytes > end || count === 0 || count > codes.length - filled) throw malformed();
      let code = 0;
      for (let i = 0; i < valueBytes; i++) code |= bytes[at + i]! << 8 * i;
      codes.fill(code, filled, filled + count);
      at += valueBytes;
      filled += count;
    } else {
      const wanted = codes.length - filled;
      if (count === 0 || count > end || (count - 1) * GROUP_VALUES >= wanted) throw malformed();
      if (at + count * bitWidth > end) throw malformed();
      const values = Math.min(count * GROUP_VALUES, wanted);
      unpackBits(bytes, at, bitWidth, codes, filled, values);
      // A group of eight codes has as many bytes as a code has bits.
      at += count * bitWidth;
      filled += values;
    }
  }
  return at;
}

function unpackBits(
  bytes: Uint8Array,
  start: number,
  bitWidth: number,
  codes: Uint16Array,
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
    codes[from + i] = buffer & mask;
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
  return new SegmentError("malformed runs of codes");
}
