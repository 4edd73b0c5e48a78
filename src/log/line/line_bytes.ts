/** Byte operations on stored lines. Short ranges use loops, which are cheaper than Buffer calls. */
import { Buffer } from "node:buffer";
import { startsWith } from "../../event/byte_writer.ts";
import { DIGIT_VALUES, NO_DIGIT } from "../../event/hash.ts";
import { type Piece, UUID_CHARS } from "../../event/line_layout.ts";
import { EVENT_BYTES_MIN } from "../../limits.ts";

/** Ends every stored line. */
export const LF = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Characters below this one are control characters, which JSON strings must escape. */
const SPACE = 0x20;
const HYPHEN = 0x2d;

/** Indexes of the bytes in a UUID that follow a hyphen in its string form. */
const BYTES_AFTER_HYPHEN = [4, 6, 8, 10];
export const UUID_BYTES = 16;
export const HASH_BYTES = 32;

/** Whether a range holds exactly the bytes of `value`. */
export function sameBytes(
  bytes: Uint8Array,
  start: number,
  end: number,
  value: Uint8Array,
): boolean {
  return end - start === value.length && startsWith(bytes, start, value);
}

/** Returns a Uint8Array of a range, which is cheaper to create than a Buffer. */
export function viewOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
}

const WORD_BYTES = 4;
const LITTLE_ENDIAN = true;

/**
 * Copies bytes between views of different memory: words, overwriting up to three bytes past the
 * range, if both have room.
 */
export function copyBytes(
  source: DataView,
  from: number,
  target: DataView,
  to: number,
  sizeBytes: number,
): void {
  const hasRoom = from + sizeBytes + WORD_BYTES <= source.byteLength &&
    to + sizeBytes + WORD_BYTES <= target.byteLength;
  if (hasRoom) {
    for (let i = 0; i < sizeBytes; i += WORD_BYTES) {
      target.setInt32(to + i, source.getInt32(from + i, LITTLE_ENDIAN), LITTLE_ENDIAN);
    }
  } else {
    for (let i = 0; i < sizeBytes; i++) target.setUint8(to + i, source.getUint8(from + i));
  }
}

/** Returns a view for word-wise copies. */
export function viewFor(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Whether `bytes` contains a piece at `at`. */
export function hasPieceAt(bytes: Uint8Array, at: number, piece: Piece): boolean {
  return startsWith(bytes, at, piece.bytes);
}

/** The two hex digits of each byte, with the first in the low half. */
const DIGIT_PAIRS = Uint16Array.from(
  { length: 0x100 },
  (_, byte) => Buffer.from(byte.toString(16).padStart(2, "0")).readUInt16LE(),
);

/** Writes an even number of bytes as lowercase hex; returns the end of the digits. */
export function putHex(
  into: DataView,
  at: number,
  from: Uint8Array,
  start: number,
  sizeBytes: number,
): number {
  for (let i = 0; i < sizeBytes; i += 2) {
    const four = DIGIT_PAIRS[from[start + i]!]! | DIGIT_PAIRS[from[start + i + 1]!]! << 16;
    into.setInt32(at + 2 * i, four, LITTLE_ENDIAN);
  }
  return at + 2 * sizeBytes;
}

/** Writes the 36 characters of a UUID; returns their end. */
export function putUuid(into: DataView, at: number, from: Uint8Array, start: number): number {
  let done = 0;
  for (const end of BYTES_AFTER_HYPHEN) {
    at = putHex(into, at, from, start + done, end - done);
    into.setUint8(at++, HYPHEN);
    done = end;
  }
  return putHex(into, at, from, start + done, UUID_BYTES - done);
}

export function uuidText(bytes: Uint8Array, start = 0): string {
  const characters = Buffer.allocUnsafe(UUID_CHARS);
  putUuid(viewFor(characters), 0, bytes, start);
  return characters.toString("latin1");
}

/** Decodes lowercase hex digits; returns false if there is any other character. */
export function takeHex(
  from: Uint8Array,
  start: number,
  sizeBytes: number,
  into: Uint8Array,
  at: number,
): boolean {
  let seen = 0;
  for (let i = 0; i < sizeBytes; i++) {
    const high = DIGIT_VALUES[from[start + 2 * i]!]!;
    const low = DIGIT_VALUES[from[start + 2 * i + 1]!]!;
    seen |= high | low;
    into[at + i] = high << 4 | low;
  }
  return seen < NO_DIGIT;
}

/** Decodes the 36 characters of a lowercase UUID; returns false if they are malformed. */
export function takeUuid(
  from: Uint8Array,
  start: number,
  into: Uint8Array,
  at: number,
): boolean {
  let valid = true;
  let done = 0;
  for (const end of BYTES_AFTER_HYPHEN) {
    valid = takeHex(from, start, end - done, into, at + done) && valid;
    start += 2 * (end - done);
    valid = from[start++] === HYPHEN && valid;
    done = end;
  }
  return takeHex(from, start, UUID_BYTES - done, into, at + done) && valid;
}

/** Whether a JSON string must escape any character in [start, end). */
export function needsEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte < SPACE || byte === QUOTE || byte === BACKSLASH) return true;
  }
  return false;
}

const LF_WORD = 0x0a0a0a0a;
const LOWEST_BITS = 0x01010101;
const HIGHEST_BITS = 0x80808080 | 0;
/** Beyond this length of a line, a native search is faster. */
const WORD_SEARCH_BYTES_MAX = 4096;
/** One runtime searches a Buffer in JavaScript, which takes twice as long. */
const { indexOf } = Uint8Array.prototype;

/**
 * Returns the end of the event line that starts at `start`, including its LF; the end of `lines` if
 * it has none. The line must be valid. Searches a typical line word by word with the zero-byte
 * trick (H. Warren, Hacker's Delight, 6-1); a call of a native search would slow a replay down.
 */
export function eventLineEnd(lines: DataView, start: number): number {
  let at = start + EVENT_BYTES_MIN - 1;
  const wordsEnd = Math.min(lines.byteLength, at + WORD_SEARCH_BYTES_MAX) - 2 * WORD_BYTES;
  for (; at <= wordsEnd; at += 2 * WORD_BYTES) {
    const first = lines.getInt32(at, LITTLE_ENDIAN) ^ LF_WORD;
    const second = lines.getInt32(at + WORD_BYTES, LITTLE_ENDIAN) ^ LF_WORD;
    const zeros = (first - LOWEST_BITS | 0) & ~first | (second - LOWEST_BITS | 0) & ~second;
    if ((zeros & HIGHEST_BITS) !== 0) break;
  }
  if (at - start > WORD_SEARCH_BYTES_MAX) {
    const bytes = new Uint8Array(lines.buffer, lines.byteOffset, lines.byteLength);
    return indexOf.call(bytes, LF, at) + 1 || lines.byteLength;
  }
  while (at < lines.byteLength && lines.getUint8(at) !== LF) at += 1;
  return Math.min(at + 1, lines.byteLength);
}

/**
 * Returns the index of the closing quote of the JSON string whose characters begin at `start`; -1
 * if it does not end before `limit` or contains a control character.
 */
export function stringEnd(bytes: Uint8Array, start: number, limit: number): number {
  for (let at = start; at < limit; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at;
    if (byte < SPACE) return -1;
    if (byte === BACKSLASH && bytes[++at]! < SPACE) return -1;
  }
  return -1;
}

/**
 * Returns the index of the first character of the JSON string that ends at `end`; -1 if none begins
 * after `limit`. A quote inside a string follows a backslash; the opening quote follows a colon.
 */
export function stringStart(bytes: Uint8Array, end: number, limit: number): number {
  for (let at = end - 1; at > limit; at--) {
    if (bytes[at] === QUOTE && bytes[at - 1] !== BACKSLASH) return at + 1;
  }
  return -1;
}

/**
 * Returns the content of a JSON string as UTF-8; null if the string is not in RFC 8785 form. The
 * result is a view of `bytes` if nothing is escaped.
 */
export function unescapedText(bytes: Buffer, start: number, end: number): Uint8Array | null {
  if (!needsEscape(bytes, start, end)) return viewOf(bytes, start, end);
  const spelled = '"' + bytes.toString("utf8", start, end) + '"';
  let text: string;
  try {
    text = JSON.parse(spelled);
  } catch {
    return null; // The escape is malformed.
  }
  return text.isWellFormed() && JSON.stringify(text) === spelled ? Buffer.from(text) : null;
}

/** Escapes a string as the content of a JSON string, without quotes, as in a stored line. */
export function spelledText(text: string): Buffer {
  return Buffer.from(JSON.stringify(text).slice(1, -1));
}
