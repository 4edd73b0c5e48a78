/**
 * The Snappy block format (google/snappy, format_description.txt): a length, then literals and
 * copies from up to 64 KiB back. Written here because sealing spends most of its time on
 * compression, which takes half the time of a Parquet library's, and because decompression must end
 * on any bytes, within its output.
 */
import { copyBytes, viewFor } from "../line/line_bytes.ts";
import { SegmentError } from "./segment_error.ts";

/** Kinds of an element, in the low bits of its first byte; copies by the size of their offset. */
const LITERAL = 0;
const COPY_1 = 1;
const COPY_2 = 2;

const COPY_BYTES_MIN = 4;
const COPY_BYTES_MAX = 64;
const COPY_1_BYTES_MAX = 11;
const COPY_1_OFFSET_END = 2 ** 11;
const COPY_OFFSET_END = 2 ** 16;
/** Literals up to here have their length in the first byte. */
const SHORT_LITERAL_BYTES_MAX = 60;

/** A copy of at least this many bytes is left to `Uint8Array.set`. */
const LONG_COPY_BYTES = 32;

/** The end of the input is always a literal, so that four bytes can be read before it. */
const INPUT_MARGIN_BYTES = 15;
/** After 32 misses every second position is tried, then every third, and so on. */
const MISSES_PER_STEP_BITS = 5;

/** Last position of each hash of four bytes. */
const TABLE_BITS = 14;
const HASH_MULTIPLIER = 0x1e35a7bd;
const table = new Int32Array(1 << TABLE_BITS);

const LITTLE_ENDIAN = true;

/** Output is written here and copied; larger outputs get memory of their own. */
const SCRATCH_BYTES = 1024 * 1024;
const scratch = new Uint8Array(SCRATCH_BYTES);

/** Most that a block can grow over its input, for a decoder: 64 bytes from a copy of three. */
export const SNAPPY_GROWTH_MAX = 22;

export function snappyCompress(input: Uint8Array): Uint8Array {
  const size = input.length;
  const limit = 32 + size + Math.ceil(size / 6);
  const out = limit <= scratch.length ? scratch : new Uint8Array(limit);
  const view = new DataView(input.buffer, input.byteOffset, size);
  table.fill(-COPY_OFFSET_END);
  let at = putLength(out, size);
  let place = 1;
  let literalStart = 0;
  let misses = 0;
  while (place < size - INPUT_MARGIN_BYTES) {
    const word = view.getInt32(place, LITTLE_ENDIAN);
    const slot = slotOf(word);
    const candidate = table[slot]!;
    table[slot] = place;
    const matches = place - candidate < COPY_OFFSET_END &&
      view.getInt32(candidate, LITTLE_ENDIAN) === word;
    if (!matches) {
      place += 1 + (misses++ >> MISSES_PER_STEP_BITS);
      continue;
    }
    at = putLiteral(out, at, input, literalStart, place);
    const matchBytes = matchLength(view, size, place, candidate);
    at = putCopies(out, at, place - candidate, matchBytes);
    place += matchBytes;
    literalStart = place;
    misses = 0;
    if (place < size - INPUT_MARGIN_BYTES) {
      table[slotOf(view.getInt32(place - 1, LITTLE_ENDIAN))] = place - 1;
    }
  }
  at = putLiteral(out, at, input, literalStart, size);
  return out === scratch ? out.slice(0, at) : out.subarray(0, at);
}

function slotOf(word: number): number {
  return Math.imul(word, HASH_MULTIPLIER) >>> (32 - TABLE_BITS);
}

/** How many bytes from `place` on are the same as those from `candidate` on; at least four. */
function matchLength(view: DataView, size: number, place: number, candidate: number): number {
  let end = place + COPY_BYTES_MIN;
  let other = candidate + COPY_BYTES_MIN;
  while (
    end + 4 <= size && view.getInt32(end, LITTLE_ENDIAN) === view.getInt32(other, LITTLE_ENDIAN)
  ) {
    end += 4;
    other += 4;
  }
  while (end < size && view.getUint8(end) === view.getUint8(other)) {
    end += 1;
    other += 1;
  }
  return end - place;
}

function putLength(out: Uint8Array, size: number): number {
  let at = 0;
  let rest = size;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out[at++] = rest & 0x7f | 0x80;
  out[at++] = rest;
  return at;
}

function putLiteral(
  out: Uint8Array,
  start: number,
  input: Uint8Array,
  from: number,
  to: number,
): number {
  const length = to - from;
  if (length === 0) return start;
  let at = start;
  if (length <= SHORT_LITERAL_BYTES_MAX) {
    out[at++] = length - 1 << 2 | LITERAL;
  } else {
    const lengthBytes = 4 - (Math.clz32(length - 1) >> 3);
    out[at++] = SHORT_LITERAL_BYTES_MAX - 1 + lengthBytes << 2 | LITERAL;
    for (let i = 0; i < lengthBytes; i++) out[at++] = length - 1 >>> 8 * i;
  }
  if (length >= LONG_COPY_BYTES) out.set(input.subarray(from, to), at);
  else for (let i = 0; i < length; i++) out[at + i] = input[from + i]!;
  return at + length;
}

function putCopies(out: Uint8Array, start: number, offset: number, length: number): number {
  let at = start;
  let rest = length;
  while (rest > COPY_BYTES_MAX) {
    // The rest must not be shorter than the shortest copy.
    const part = Math.min(COPY_BYTES_MAX, rest - COPY_BYTES_MIN);
    at = putCopy(out, at, offset, part);
    rest -= part;
  }
  return putCopy(out, at, offset, rest);
}

function putCopy(out: Uint8Array, at: number, offset: number, length: number): number {
  if (length <= COPY_1_BYTES_MAX && offset < COPY_1_OFFSET_END) {
    out[at] = length - COPY_BYTES_MIN << 2 | offset >>> 8 << 5 | COPY_1;
    out[at + 1] = offset;
    return at + 2;
  }
  out[at] = length - 1 << 2 | COPY_2;
  out[at + 1] = offset;
  out[at + 2] = offset >>> 8;
  return at + 3;
}

/**
 * Decompresses a block into `out`, which is exactly as large as its content.
 * @throws {SegmentError} when the block is malformed or has another size.
 */
export function snappyDecompress(input: Uint8Array, out: Uint8Array): void {
  const source = viewFor(input);
  const target = viewFor(out);
  const size = input.length;
  let from = 0;
  let at = 0;
  // Skip the length, which the page header has too.
  while (from < size && input[from++]! >= 0x80);
  while (from < size) {
    const tag = input[from++]!;
    if ((tag & 3) === LITERAL) {
      let length = (tag >> 2) + 1;
      if (length > SHORT_LITERAL_BYTES_MAX) {
        const lengthBytes = length - SHORT_LITERAL_BYTES_MAX;
        length = 1 + readUint(input, from, lengthBytes);
        from += lengthBytes;
      }
      if (from + length > size || at + length > out.length) throw malformed();
      if (length >= LONG_COPY_BYTES) out.set(input.subarray(from, from + length), at);
      else copyBytes(source, from, target, at, length);
      from += length;
      at += length;
    } else {
      let length = (tag >> 2) + 1;
      let offset: number;
      if ((tag & 3) === COPY_1) {
        length = (tag >> 2 & 7) + COPY_BYTES_MIN;
        offset = tag >> 5 << 8 | input[from]!;
        from += 1;
      } else if ((tag & 3) === COPY_2) {
        offset = input[from]! | input[from + 1]! << 8;
        from += 2;
      } else {
        offset = readUint(input, from, 4);
        from += 4;
      }
      if (offset === 0 || offset > at || at + length > out.length) throw malformed();
      copyBytes(target, at - offset, target, at, length);
      at += length;
    }
  }
  if (from !== size || at !== out.length) throw malformed();
}

/** An unsigned integer of up to four bytes, the lowest first. */
function readUint(bytes: Uint8Array, start: number, count: number): number {
  let value = 0;
  for (let i = 0; i < count; i++) value |= bytes[start + i]! << 8 * i;
  return value >>> 0;
}

function malformed(): SegmentError {
  return new SegmentError("malformed Snappy block");
}
