/**
 * The small copies that stored lines are taken apart and put together with. Loops in place of calls
 * of Buffer: most pieces are shorter than what a call costs.
 */
import { Buffer } from "node:buffer";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Below it are the control characters, which JSON strings escape. */
const SPACE = 0x20;
const HYPHEN = 0x2d;

/** A copy of at least this many bytes is left to `Uint8Array.set`. */
const LONG_COPY_BYTES = 64;

/** Where the hyphens of a UUID's 36 characters stand before one of its bytes: before these. */
const BYTES_AFTER_HYPHEN = [4, 6, 8, 10];
export const UUID_BYTES = 16;
export const UUID_CHARS = 36;
export const HASH_BYTES = 32;
export const HASH_CHARS = 64;

/** Above the value of any hex digit. */
const NO_DIGIT = 0x10;
const DIGIT_VALUES = new Uint8Array(0x100).fill(NO_DIGIT);
const DIGITS = Buffer.from("0123456789abcdef");
DIGITS.forEach((digit, value) => DIGIT_VALUES[digit] = value);

/** Whether two ranges of bytes are the same. */
export function sameBytes(
  a: Uint8Array,
  aStart: number,
  aEnd: number,
  b: Uint8Array,
  bStart: number,
  bEnd: number,
): boolean {
  if (aEnd - aStart !== bEnd - bStart) return false;
  for (let at = aStart; at < aEnd; at++) {
    if (a[at] !== b[bStart + at - aStart]) return false;
  }
  return true;
}

/** Whether `bytes` have the characters of an ASCII text at `start`. */
export function isTextAt(bytes: Uint8Array, start: number, text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (bytes[start + at] !== text.charCodeAt(at)) return false;
  }
  return true;
}

/** A view of a range, which costs less than one that is a Buffer. */
export function viewOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
}

/** Copies a range to `into`, where there is room; returns where the copy ends. */
export function putBytes(
  into: Uint8Array,
  at: number,
  from: Uint8Array,
  start = 0,
  end: number = from.length,
): number {
  const sizeBytes = end - start;
  if (sizeBytes >= LONG_COPY_BYTES) into.set(viewOf(from, start, end), at);
  else for (let i = 0; i < sizeBytes; i++) into[at + i] = from[start + i]!;
  return at + sizeBytes;
}

const WORD_BYTES = 4;
const LITTLE_ENDIAN = true;

/** `copyWords()` reads and writes up to here beyond what it copies. */
export const COPY_MARGIN_BYTES: number = WORD_BYTES;

/**
 * Copies bytes in words, so that a few that mean nothing are put behind them: both views go on for
 * COPY_MARGIN_BYTES, and what follows in `target` is still to be written.
 */
export function copyWords(
  source: DataView,
  from: number,
  target: DataView,
  to: number,
  sizeBytes: number,
): void {
  for (let i = 0; i < sizeBytes; i += WORD_BYTES) {
    target.setInt32(to + i, source.getInt32(from + i, LITTLE_ENDIAN), LITTLE_ENDIAN);
  }
}

/**
 * Copies bytes from the first to the last, for a copy may go on into what it writes: in words where
 * those do not overlap, and where what is put too much is still to be written.
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
  if (hasRoom && (source !== target || to - from >= WORD_BYTES)) {
    copyWords(source, from, target, to, sizeBytes);
  } else {
    for (let i = 0; i < sizeBytes; i++) target.setUint8(to + i, source.getUint8(from + i));
  }
}

/** Bytes that are copied in words. */
export function viewFor(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Bytes that are put in many places. */
export interface Piece {
  /** Goes on behind them, so that they can be copied in words. */
  view: DataView;
  sizeBytes: number;
}

export function pieceOf(bytes: Uint8Array): Piece {
  const padded = Buffer.concat([bytes], bytes.length + WORD_BYTES);
  return { view: viewFor(padded), sizeBytes: bytes.length };
}

/** Returns where the copy ends. */
export function putPiece(into: DataView, at: number, { view, sizeBytes }: Piece): number {
  copyBytes(view, 0, into, at, sizeBytes);
  return at + sizeBytes;
}

/** Whether bytes have a piece at `at`. */
export function hasPieceAt(bytes: DataView, at: number, { view, sizeBytes }: Piece): boolean {
  if (at + sizeBytes > bytes.byteLength) return false;
  let i = 0;
  for (; i + WORD_BYTES <= sizeBytes; i += WORD_BYTES) {
    if (bytes.getInt32(at + i) !== view.getInt32(i)) return false;
  }
  for (; i < sizeBytes; i++) {
    if (bytes.getUint8(at + i) !== view.getUint8(i)) return false;
  }
  return true;
}

/** For each byte its two digits, the first one in the low half. */
const DIGIT_PAIRS = Uint16Array.from(
  { length: 0x100 },
  (_, byte) => DIGITS[byte >> 4]! | DIGITS[byte & 0xf]! << 8,
);

/** Spells an even number of bytes in lowercase hex; returns where the digits end. */
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

/** Spells a UUID in its 36 characters; returns where they end. */
export function putUuid(into: DataView, at: number, from: Uint8Array, start: number): number {
  let done = 0;
  for (const end of BYTES_AFTER_HYPHEN) {
    at = putHex(into, at, from, start + done, end - done);
    into.setUint8(at++, HYPHEN);
    done = end;
  }
  return putHex(into, at, from, start + done, UUID_BYTES - done);
}

/** The 36 characters of a UUID. */
export function uuidText(bytes: Uint8Array, start = 0): string {
  const characters = Buffer.allocUnsafe(UUID_CHARS);
  putUuid(viewFor(characters), 0, bytes, start);
  return characters.toString("latin1");
}

/** The highest bit of each byte of a word. */
const HIGH_BITS = 0x80808080 | 0;

/**
 * Whether the characters from `at` on, a multiple of four, are lowercase hex digits. Four at a
 * time: a byte below 0x80 plus 0x80 - c has its highest bit set from the character c on.
 */
export function areHexDigits(bytes: DataView, at: number, chars: number): boolean {
  if (at + chars > bytes.byteLength) return false;
  let valid = HIGH_BITS;
  for (let i = 0; i < chars; i += WORD_BYTES) valid &= hexBits(bytes.getInt32(at + i));
  return valid === HIGH_BITS;
}

/** The highest bit of each byte of a word that is a lowercase hex digit. */
function hexBits(word: number): number {
  const digits = (word + 0x50505050) & ~(word + 0x46464646);
  const letters = (word + 0x1f1f1f1f) & ~(word + 0x19191919);
  return (word & HIGH_BITS) === 0 ? (digits | letters) & HIGH_BITS : 0;
}

/** Whether the 36 characters from `at` on are a UUID in lowercase. */
export function isUuidAt(bytes: DataView, at: number): boolean {
  return areHexDigits(bytes, at, 8) && areHexDigits(bytes, at + 9, 4) &&
    areHexDigits(bytes, at + 14, 4) && areHexDigits(bytes, at + 19, 4) &&
    areHexDigits(bytes, at + 24, 12) && bytes.getUint8(at + 8) === HYPHEN &&
    bytes.getUint8(at + 13) === HYPHEN && bytes.getUint8(at + 18) === HYPHEN &&
    bytes.getUint8(at + 23) === HYPHEN;
}

/** Decodes lowercase hex digits; false when there are others. */
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

/** Decodes the 36 characters of a UUID in lowercase; false when they are no such. */
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

/** Whether a JSON string of these characters has to escape any. */
export function needsEscape(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte < SPACE || byte === QUOTE || byte === BACKSLASH) return true;
  }
  return false;
}

/**
 * Where the JSON string ends whose characters begin at `start`: the place of its closing quote. -1
 * when it does not end before `limit`, or has a control character.
 */
export function stringEnd(bytes: Uint8Array, start: number, limit: number): number {
  for (let at = start; at < limit; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at;
    if (byte < SPACE) return -1;
    if (byte === BACKSLASH) at++;
  }
  return -1;
}

/**
 * Where the characters of a JSON string begin that ends before `end`; -1 when nothing after `limit`
 * is the start of one. Inside a string a backslash stands before every quote, before it a colon.
 */
export function stringStart(bytes: Uint8Array, end: number, limit: number): number {
  for (let at = end - 1; at > limit; at--) {
    if (bytes[at] === QUOTE && bytes[at - 1] !== BACKSLASH) return at + 1;
  }
  return -1;
}

/**
 * The UTF-8 text that a JSON string's characters stand for; null when RFC 8785 spells it otherwise.
 * The text is a view of `bytes` when nothing in it is escaped.
 */
export function unescapedText(bytes: Buffer, start: number, end: number): Uint8Array | null {
  if (!needsEscape(bytes, start, end)) return bytes.subarray(start, end);
  const spelled = '"' + bytes.toString("utf8", start, end) + '"';
  let text: string;
  try {
    text = JSON.parse(spelled);
  } catch {
    return null; // The escape is malformed.
  }
  return text.isWellFormed() && JSON.stringify(text) === spelled ? Buffer.from(text) : null;
}

/** The characters of the JSON string that stands for a UTF-8 text. */
export function escapedText(text: Uint8Array, start: number, end: number): Uint8Array {
  const decoded = Buffer.from(text.buffer, text.byteOffset + start, end - start).toString("utf8");
  return Buffer.from(JSON.stringify(decoded).slice(1, -1));
}
