/**
 * One fast pass over the bytes of a JSON text for what `JSON.parse` does not tell: how many members
 * it has, how deep it nests, and whether a number or an escape breaks a rule. It does not check the
 * grammar; what it says of a text outside the grammar means nothing.
 */
import { Buffer } from "node:buffer";
import { numberFault } from "./json_number.ts";

export interface JsonScan {
  /** Members of all objects together. */
  members: number;
  /** Most containers on one path. */
  depth: number;
  /** All bytes are below 0x80. */
  isAscii: boolean;
  /** Some member's name is spelled with an escape. */
  hasEscapedName: boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const DOT = 0x2e;
const UPPER_E = 0x45;
const LOWER_E = 0x65;
const LOWER_U = 0x75;

const IS_QUOTE = 1;
const IS_COLON = 2;
const IS_OPEN = 3;
const IS_CLOSE = 4;
const IS_NUMBER_START = 5;

/** What a byte outside strings begins; 0 for what needs no look. */
const TOKEN_KINDS = new Uint8Array(256);
TOKEN_KINDS[QUOTE] = IS_QUOTE;
TOKEN_KINDS[0x3a] = IS_COLON;
TOKEN_KINDS[0x5b] = TOKEN_KINDS[0x7b] = IS_OPEN;
TOKEN_KINDS[0x5d] = TOKEN_KINDS[0x7d] = IS_CLOSE;
for (const char of "-0123456789") TOKEN_KINDS[char.charCodeAt(0)] = IS_NUMBER_START;

const IS_IN_NUMBER = new Uint8Array(256);
for (const char of "+-.0123456789Ee") IS_IN_NUMBER[char.charCodeAt(0)] = 1;

/** No shorter integer literal can exceed 2^53 - 1, which has 16 digits. */
const LONG_INTEGER_CHARS = 16;
/** The shortest literal that overflows is `1e309`. */
const LONG_EXPONENT_CHARS = 5;
/** Without an exponent, 309 digits are needed to overflow. */
const LONG_NUMBER_CHARS = 309;

/** @returns null when a number or an escape breaks a rule, or the text ends within a string. */
export function scanJson(bytes: Uint8Array): JsonScan | null {
  let members = 0;
  let depth = 0;
  let depthMax = 0;
  let seenBits = 0;
  let hasEscapedName = false;
  let isEscaped = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    switch (TOKEN_KINDS[byte]) {
      case IS_QUOTE:
        isEscaped = false;
        for (at++; at < bytes.length; at++) {
          const inside = bytes[at]!;
          if (inside === QUOTE) break;
          seenBits |= inside;
          if (inside !== BACKSLASH) continue;
          isEscaped = true;
          at = escapeEnd(bytes, at);
          if (at < 0) return null;
        }
        break;
      case IS_COLON:
        members++;
        // The string before a colon is a name.
        if (isEscaped) hasEscapedName = true;
        break;
      case IS_OPEN:
        depth++;
        if (depth > depthMax) depthMax = depth;
        break;
      case IS_CLOSE:
        depth--;
        break;
      case IS_NUMBER_START:
        at = numberEnd(bytes, at);
        if (at < 0) return null;
        break;
      default:
        seenBits |= byte;
    }
  }
  return { members, depth: depthMax, isAscii: seenBits < 0x80, hasEscapedName };
}

/**
 * Index of the last byte of the escape, or of a surrogate pair of escapes; -1 for an unpaired one.
 */
function escapeEnd(bytes: Uint8Array, backslashAt: number): number {
  if (bytes[backslashAt + 1] !== LOWER_U) return backslashAt + 1;
  const high = surrogateRole(bytes, backslashAt);
  if (high === 0) return backslashAt + 5;
  const lowAt = backslashAt + 6;
  const isPair = high === 1 && bytes[lowAt] === BACKSLASH && bytes[lowAt + 1] === LOWER_U &&
    surrogateRole(bytes, lowAt) === 2;
  return isPair ? lowAt + 5 : -1;
}

/** 1 for the escape of a high surrogate, 2 for a low one, 0 for none. */
function surrogateRole(bytes: Uint8Array, backslashAt: number): 0 | 1 | 2 {
  const first = bytes[backslashAt + 2]! | 0x20;
  if (first !== 0x64) return 0;
  const second = bytes[backslashAt + 3]! | 0x20;
  if (second === 0x38 || second === 0x39 || second === 0x61 || second === 0x62) return 1;
  return second >= 0x63 && second <= 0x66 ? 2 : 0;
}

/** Index of the last byte of a number; -1 when it breaks the number rule. */
function numberEnd(bytes: Uint8Array, startAt: number): number {
  let isInteger = true;
  let hasExponent = false;
  let at = startAt + 1;
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (IS_IN_NUMBER[byte] === 0) break;
    if (byte === DOT) isInteger = false;
    else if (byte === LOWER_E || byte === UPPER_E) hasExponent = true;
  }
  const chars = at - startAt;
  if (chars < LONG_EXPONENT_CHARS) return at - 1;
  const needsLook = hasExponent || chars >= LONG_NUMBER_CHARS ||
    (isInteger && chars >= LONG_INTEGER_CHARS);
  if (!needsLook) return at - 1;
  const literal = Buffer.from(bytes.buffer, bytes.byteOffset + startAt, chars).toString("latin1");
  return numberFault(literal) === null ? at - 1 : -1;
}
