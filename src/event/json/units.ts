/** The units of a canonical JSON string in UTF-8: bytes and escapes. */
import { Buffer } from "node:buffer";

const BLANK = 0x20;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** Returned by `hexUnit()` if there is none. */
const NOT_HEX = -1;
/** First UTF-8 byte of U+E000, the first code point above the surrogates. */
const PRIVATE_LEAD = 0xee;
/** First UTF-8 byte of code points that take two UTF-16 code units. */
const FOUR_BYTE_LEAD = 0xf0;

/** The character of each escape with one letter, by letter; 0 for other letters. */
export const SHORT_ESCAPES: Uint8Array = new Uint8Array(256);
for (const character of '\b\t\n\f\r"\\') {
  SHORT_ESCAPES[JSON.stringify(character).charCodeAt(2)] = character.charCodeAt(0);
}
/** Characters below this are encoded by table, since some of them need an escape. */
const TABLED_MAX = 0x80;
const TABLED = Array.from({ length: TABLED_MAX }, (_, code) => {
  return Buffer.from(JSON.stringify(String.fromCharCode(code)).slice(1, -1));
});

/**
 * Ranks the unit of a canonical string at `at`, a byte or an escape, in UTF-16 order, in which
 * surrogates precede U+E000.
 */
export function rankAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  if (byte >= PRIVATE_LEAD && byte < FOUR_BYTE_LEAD) return byte + 0x100;
  if (byte !== BACKSLASH) return byte;
  return bytes[at + 1] === LETTER_U ? hexUnit(bytes, at + 2) : SHORT_ESCAPES[bytes[at + 1]!]!;
}

export function unitBytes(bytes: Uint8Array, at: number): number {
  return bytes[at] !== BACKSLASH ? 1 : bytes[at + 1] === LETTER_U ? 6 : 2;
}

/** Returns the UTF-16 code unit of four hex digits; -1 if there are none. */
export function hexUnit(bytes: Uint8Array, start: number): number {
  let unit = 0;
  for (let at = start; at < start + 4; at++) {
    const letter = bytes[at]! | BLANK;
    const isLetter = letter >= 0x61 && letter <= 0x66;
    if (!isLetter && !isDigit(bytes[at]!)) return NOT_HEX;
    unit = unit * 16 + (isLetter ? letter - 0x57 : letter - DIGIT_0);
  }
  return unit;
}

/** Writes a character, escaped if necessary. @returns the end of what was written. */
export function putCodePoint(code: number, bytes: Uint8Array, start: number): number {
  let at = start;
  if (code < TABLED_MAX) {
    for (const byte of TABLED[code]!) bytes[at++] = byte;
    return at;
  }
  if (code < 0x800) bytes[at++] = 0xc0 | code >> 6;
  else {
    if (code < 0x10000) bytes[at++] = 0xe0 | code >> 12;
    else {
      bytes[at++] = 0xf0 | code >> 18;
      bytes[at++] = 0x80 | code >> 12 & 0x3f;
    }
    bytes[at++] = 0x80 | code >> 6 & 0x3f;
  }
  bytes[at++] = 0x80 | code & 0x3f;
  return at;
}

export function isDigit(byte: number): boolean {
  return byte >= DIGIT_0 && byte <= DIGIT_9;
}
