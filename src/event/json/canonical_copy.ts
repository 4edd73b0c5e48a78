/**
 * Copies a JSON value within one buffer in canonical form (RFC 8785), in one pass that builds no
 * values. Strings without escapes and most numbers are copied unchanged. Anything rare or invalid
 * falls back to the slow path (`strict_json.ts` and `canonical_json.ts`), which produces the same
 * bytes.
 *
 * The input must be valid UTF-8 followed by a NUL, which ends every scan.
 */
import { Buffer } from "node:buffer";
import { type ByteWriter, startsWith } from "../byte_writer.ts";
import { numberFault } from "./strict_json.ts";
import { quoteString } from "./quote_string.ts";

/** Returned instead of an index to fall back to the slow path. */
export const NOT_TAKEN = -1;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const BLANK = 0x20;
/** First UTF-8 byte of U+E000, the first code point above the surrogates. */
const PRIVATE_LEAD = 0xee;
/** First UTF-8 byte of code points that take two UTF-16 code units. */
const FOUR_BYTE_LEAD = 0xf0;

const LITERALS = ["true", "false", "null"].map((text) => Buffer.from(text));
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
/** A decimal of up to 15 digits survives a round trip through binary64. */
const KEPT_DIGITS_MAX = 15;
/** Maximum length of a number formatted by ECMAScript, such as `-1.2345678901234567e-308`. */
const NUMBER_CHARS_MAX = 25;
/** Objects with more members are sorted in O(n log n). */
const INSERTED_MEMBERS_MAX = 24;

/** Returns the index of the first byte at or after `at` that is not JSON whitespace. */
export function skipBlanks(bytes: Uint8Array, at: number): number {
  for (;; at++) {
    const byte = bytes[at]!;
    if (byte > BLANK) return at;
    if (byte !== BLANK && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
  }
}

/** Returns the end index of the escape-free string at `at`; NOT_TAKEN if there is none. */
export function plainStringEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return NOT_TAKEN;
  for (at++;; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH || byte < BLANK) return NOT_TAKEN;
  }
}

export class CanonicalCopy {
  readonly #out: ByteWriter;
  /** End of the input. */
  readonly #end: number;
  /** For each member of an open object: the start and end of its name, and the end of its value. */
  readonly #members: number[] = [];

  /** @param out also holds the input, which ends at `end`. */
  constructor(out: ByteWriter, end: number) {
    this.#out = out;
    this.#end = end;
  }

  /**
   * Copies the value that begins at `at`.
   * @param depthMax maximum nesting of containers.
   * @returns the value's end index; NOT_TAKEN on failure, which leaves the output invalid.
   */
  copy(at: number, depthMax: number): number {
    this.#members.length = 0;
    this.#reserve(at);
    return this.#value(at, depthMax);
  }

  /** Reserves enough space to copy the rest of the input unchanged. */
  #reserve(at: number): void {
    this.#out.reserve(this.#end - at);
  }

  #value(at: number, depthMax: number): number {
    switch (this.#out.bytes[at]) {
      case QUOTE:
        return this.#string(at);
      case OPEN_OBJECT:
        return depthMax > 0 ? this.#object(at, depthMax - 1) : NOT_TAKEN;
      case OPEN_ARRAY:
        return depthMax > 0 ? this.#array(at, depthMax - 1) : NOT_TAKEN;
      case 0x74:
      case 0x66:
      case 0x6e:
        return this.#literal(at);
      default:
        return this.#number(at);
    }
  }

  #string(start: number): number {
    const end = this.#plainString(start);
    return end === NOT_TAKEN ? this.#escapedString(start) : end;
  }

  /** Copies the escape-free string at `start`; returns NOT_TAKEN if there is none. */
  #plainString(start: number): number {
    const end = plainStringEnd(this.#out.bytes, start);
    if (end !== NOT_TAKEN) this.#out.copyOwn(start, end);
    return end;
  }

  #escapedString(start: number): number {
    const { bytes } = this.#out;
    let at = start + 1;
    while (at < this.#end && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
    const end = at + 1;
    const text = parseString(bytes.toString("utf8", start, end));
    if (text === null) return NOT_TAKEN;
    this.#out.text(quoteString(text));
    this.#reserve(end);
    return end;
  }

  #literal(at: number): number {
    const literal = LITERALS.find((literal) => startsWith(this.#out.bytes, at, literal));
    if (literal === undefined) return NOT_TAKEN;
    this.#out.copyOwn(at, at + literal.length);
    return at + literal.length;
  }

  #number(start: number): number {
    const { bytes } = this.#out;
    let at = start;
    if (bytes[at] === MINUS) at++;
    const firstDigit = at;
    at = digitsEnd(bytes, at);
    let digits = at - firstDigit;
    // Numbers with a leading zero (`-0`, `0.5`) and long ones are checked separately.
    let isCanonical = digits > 0 && (bytes[firstDigit] !== DIGIT_0 || at === start + 1);
    if (isCanonical && bytes[at] === DOT) {
      const fraction = at + 1;
      at = digitsEnd(bytes, fraction);
      digits += at - fraction;
      isCanonical = at > fraction && bytes[at - 1] !== DIGIT_0 && bytes[firstDigit] !== DIGIT_0;
    }
    if (!isCanonical || digits > KEPT_DIGITS_MAX || isNumberPart(bytes[at]!)) {
      return this.#otherNumber(start);
    }
    this.#out.copyOwn(start, at);
    return at;
  }

  #otherNumber(start: number): number {
    const { bytes } = this.#out;
    let end = start;
    while (isNumberPart(bytes[end]!)) end++;
    const literal = bytes.toString("latin1", start, end);
    if (!NUMBER.test(literal) || numberFault(literal) !== null) return NOT_TAKEN;
    this.#out.reserve(NUMBER_CHARS_MAX);
    this.#out.ascii(String(Number(literal)));
    this.#reserve(end);
    return end;
  }

  #array(start: number, depthMax: number): number {
    const { bytes } = this.#out;
    this.#byte(OPEN_ARRAY);
    let at = skipBlanks(bytes, start + 1);
    if (bytes[at] !== CLOSE_ARRAY) {
      for (;;) {
        at = this.#value(at, depthMax);
        if (at === NOT_TAKEN) return NOT_TAKEN;
        at = skipBlanks(bytes, at);
        if (bytes[at] !== COMMA) break;
        this.#byte(COMMA);
        at = skipBlanks(bytes, at + 1);
      }
    }
    if (bytes[at] !== CLOSE_ARRAY) return NOT_TAKEN;
    this.#byte(CLOSE_ARRAY);
    return at + 1;
  }

  #object(start: number, depthMax: number): number {
    const { bytes } = this.#out;
    const members = this.#members;
    const firstMember = members.length;
    this.#byte(OPEN_OBJECT);
    const outStart = this.#out.size;
    let isSorted = true;
    let at = skipBlanks(bytes, start + 1);
    if (bytes[at] !== CLOSE_OBJECT) {
      for (;;) {
        const member = members.length;
        at = this.#name(at);
        if (at === NOT_TAKEN || bytes[at] !== COLON) return NOT_TAKEN;
        if (isSorted && member > firstMember) isSorted = this.#compareNames(member - 3, member) < 0;
        this.#byte(COLON);
        at = this.#value(skipBlanks(bytes, at + 1), depthMax);
        if (at === NOT_TAKEN) return NOT_TAKEN;
        members[member + 2] = this.#out.size;
        at = skipBlanks(bytes, at);
        if (bytes[at] !== COMMA) break;
        this.#byte(COMMA);
        at = skipBlanks(bytes, at + 1);
      }
    }
    if (bytes[at] !== CLOSE_OBJECT) return NOT_TAKEN;
    if (!isSorted && !this.#sortMembers(firstMember, outStart)) return NOT_TAKEN;
    members.length = firstMember;
    this.#byte(CLOSE_OBJECT);
    return at + 1;
  }

  /** Copies and records a name without escapes; returns the index where its colon must be. */
  #name(start: number): number {
    const { bytes, size } = this.#out;
    const end = this.#plainString(start);
    if (end === NOT_TAKEN) return NOT_TAKEN;
    this.#members.push(size + 1, this.#out.size - 1, 0);
    return skipBlanks(bytes, end);
  }

  /** Compares names by UTF-16 code units. */
  #compareNames(left: number, right: number): number {
    const out = this.#out.bytes;
    const members = this.#members;
    let leftAt = members[left]!;
    let rightAt = members[right]!;
    const leftEnd = members[left + 1]!;
    const rightEnd = members[right + 1]!;
    while (leftAt < leftEnd && rightAt < rightEnd) {
      const leftByte = out[leftAt++]!;
      const rightByte = out[rightAt++]!;
      if (leftByte !== rightByte) return utf16Rank(leftByte) - utf16Rank(rightByte);
    }
    return (leftEnd - leftAt) - (rightEnd - rightAt);
  }

  /** Sorts the members in an object; returns false if two have the same name. */
  #sortMembers(firstMember: number, outStart: number): boolean {
    const members = this.#members;
    const order: number[] = [];
    // A few members are inserted in order, since `sort()` allocates more than all else does.
    const isShort = members.length - firstMember <= 3 * INSERTED_MEMBERS_MAX;
    for (let member = firstMember; member < members.length; member += 3) {
      let place = order.push(member) - 1;
      for (; isShort && place > 0; place--) {
        const before = order[place - 1]!;
        if (this.#compareNames(before, member) <= 0) break;
        order[place] = before;
      }
      order[place] = member;
    }
    if (!isShort) order.sort((left, right) => this.#compareNames(left, right));
    for (let index = 1; index < order.length; index++) {
      if (this.#compareNames(order[index - 1]!, order[index]!) === 0) return false;
    }
    // Write the sorted members after the object, then copy them over it.
    const out = this.#out;
    const outEnd = out.size;
    out.reserve(outEnd - outStart);
    for (const member of order) {
      if (out.size > outEnd) this.#byte(COMMA);
      out.copyOwn(members[member]! - 1, members[member + 2]!);
    }
    out.bytes.copyWithin(outStart, outEnd, out.size);
    out.size = outEnd;
    return true;
  }

  #byte(byte: number): void {
    this.#out.bytes[this.#out.size++] = byte;
  }
}

/** Ranks UTF-8 bytes in UTF-16 order, in which surrogates precede U+E000. */
function utf16Rank(byte: number): number {
  return byte >= PRIVATE_LEAD && byte < FOUR_BYTE_LEAD ? byte + 0x100 : byte;
}

function digitsEnd(bytes: Uint8Array, at: number): number {
  while (bytes[at]! >= DIGIT_0 && bytes[at]! <= DIGIT_9) at++;
  return at;
}

/** Whether a byte can occur in a number: a digit, sign, dot or exponent. */
function isNumberPart(byte: number): boolean {
  return byte >= DIGIT_0 && byte <= DIGIT_9 || byte === DOT || byte === MINUS || byte === 0x2b ||
    byte === 0x65 || byte === 0x45;
}

/** Returns null for an invalid JSON string or one with an unpaired surrogate. */
function parseString(literal: string): string | null {
  try {
    const text: string = JSON.parse(literal);
    return text.isWellFormed() ? text : null;
  } catch {
    return null;
  }
}
