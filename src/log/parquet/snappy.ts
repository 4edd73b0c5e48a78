/**
 * The Snappy block format (google/snappy, format_description.txt): a length, then literals and
 * copies from up to 64 KiB back. Implemented here because decompression must terminate on any input
 * and stay within its output buffer. Writes and accepts only three element types: literals of up to
 * 60 bytes, literals with a four-byte length, and copies with a two-byte offset.
 */
import { copyBytes, LITTLE_ENDIAN, putBytes, viewFor } from "../line/line_bytes.ts";
import { SegmentError } from "./segment_error.ts";

/** Element types, in the two low bits of the tag byte. */
const LITERAL = 0;
const COPY = 2;

const SHORT_LITERAL_BYTES_MAX = 60;
/** Tag byte for a longer literal. The length of the literal follows. */
const LONG_LITERAL = 63 << 2 | LITERAL;
const LENGTH_BYTES = 4;
const COPY_BYTES_MAX = 64;
const OFFSET_BYTES = 2;
const OFFSET_END = 2 ** 16;

/** Copies of at least this many bytes use `Uint8Array.set`. */
const LONG_COPY_BYTES = 32;

/** Size of a hashed word, and minimum length of a match. */
const WORD_BYTES = 4;
/** Log2 of the size of the hash table, which maps word hashes to their last positions. */
const TABLE_BITS = 14;
const HASH_MULTIPLIER = 0x1e35a7bd;
const table = new Int32Array(1 << TABLE_BITS);
/** The search step grows by one byte after every 32 misses. */
const MISSES_PER_STEP_BITS = 5;

/** Blocks are compressed into this buffer, then copied. Larger outputs get their own buffer. */
const scratch = new Uint8Array(1024 * 1024);

/** Maximum expansion when decompressing: 64 bytes from a three-byte copy. */
export const SNAPPY_GROWTH_MAX = 22;

export function snappyCompress(input: Uint8Array): Uint8Array {
  const size = input.length;
  const source = viewFor(input);
  const limit = 32 + size + Math.ceil(size / 6);
  const out = limit <= scratch.length ? scratch : new Uint8Array(limit);
  table.fill(-OFFSET_END);
  let at = putSize(out, size);
  let literalStart = 0;
  let misses = 0;
  for (let place = 0; place + WORD_BYTES <= size;) {
    const word = source.getInt32(place, LITTLE_ENDIAN);
    const slot = Math.imul(word, HASH_MULTIPLIER) >>> (32 - TABLE_BITS);
    const candidate = table[slot]!;
    table[slot] = place;
    const offset = place - candidate;
    if (offset >= OFFSET_END || source.getInt32(candidate, LITTLE_ENDIAN) !== word) {
      place += 1 + (misses++ >> MISSES_PER_STEP_BITS);
      continue;
    }
    let end = place + WORD_BYTES;
    while (end < size && input[end] === input[end - offset]) end += 1;
    at = putLiteral(out, at, input, literalStart, place);
    at = putCopies(out, at, offset, end - place);
    place = literalStart = end;
    misses = 0;
  }
  at = putLiteral(out, at, input, literalStart, size);
  return out === scratch ? out.slice(0, at) : out.subarray(0, at);
}

function putSize(out: Uint8Array, size: number): number {
  let at = 0;
  let rest = size;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out[at++] = rest & 0x7f | 0x80;
  out[at++] = rest;
  return at;
}

function putLiteral(
  out: Uint8Array,
  at: number,
  input: Uint8Array,
  from: number,
  to: number,
): number {
  const length = to - from;
  if (length === 0) return at;
  if (length <= SHORT_LITERAL_BYTES_MAX) {
    out[at++] = length - 1 << 2 | LITERAL;
  } else {
    out[at++] = LONG_LITERAL;
    for (let i = 0; i < LENGTH_BYTES; i++) out[at++] = length - 1 >>> 8 * i;
  }
  return putBytes(out, at, input, from, to);
}

function putCopies(out: Uint8Array, at: number, offset: number, length: number): number {
  for (let rest = length; rest > 0; rest -= COPY_BYTES_MAX) {
    out[at++] = Math.min(rest, COPY_BYTES_MAX) - 1 << 2 | COPY;
    out[at++] = offset;
    out[at++] = offset >>> 8;
  }
  return at;
}

/**
 * Decompresses a block into `out`, which must have exactly the uncompressed size.
 * @throws {SegmentError} if the block is malformed or has a different size.
 */
export function snappyDecompress(input: Uint8Array, out: Uint8Array): void {
  const source = viewFor(input);
  const target = viewFor(out);
  const size = input.length;
  let from = 0;
  let at = 0;
  // Skip the length, since the page header also contains it.
  while (from < size && input[from++]! >= 0x80);
  while (from < size) {
    const tag = input[from++]!;
    let length = (tag >> 2) + 1;
    if ((tag & 3) === LITERAL) {
      if (length > SHORT_LITERAL_BYTES_MAX) {
        if (tag !== LONG_LITERAL || from + LENGTH_BYTES > size) throw malformed();
        length = source.getUint32(from, LITTLE_ENDIAN) + 1;
        from += LENGTH_BYTES;
      }
      if (from + length > size || at + length > out.length) throw malformed();
      if (length >= LONG_COPY_BYTES) out.set(input.subarray(from, from + length), at);
      else copyBytes(source, from, target, at, length);
      from += length;
    } else {
      if ((tag & 3) !== COPY || from + OFFSET_BYTES > size) throw malformed();
      const offset = source.getUint16(from, LITTLE_ENDIAN);
      from += OFFSET_BYTES;
      if (offset === 0 || offset > at || at + length > out.length) throw malformed();
      copyBytes(target, at - offset, target, at, length);
    }
    at += length;
  }
  if (at !== out.length) throw malformed();
}

function malformed(): SegmentError {
  return new SegmentError("malformed Snappy block");
}
