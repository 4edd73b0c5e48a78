/**
 * Copies a JSON value within one buffer in canonical form (RFC 8785), in one pass that builds no
 * values. Plain strings and most numbers are copied unchanged. Nothing valid takes much longer, so
 * that no body occupies a thread for long. For anything invalid, `strict_json.ts` finds the fault.
 *
 * The input must be valid UTF-8 followed by a NUL, which ends every scan.
 */
import { Buffer } from "node:buffer";
import { type ByteWriter, startsWith } from "../byte_writer.ts";
import { hexUnit, isDigit, putCodePoint, rankAt, SHORT_ESCAPES, unitBytes } from "./units.ts";
import { numberFault } from "./strict_json.ts";

/** Returned instead of an index for a value that is invalid or nested too deeply. */
export const NOT_TAKEN = -1;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const SLASH = 0x2f;
const DIGIT_0 = 0x30;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LETTER_E = 0x65;
const LETTER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const BLANK = 0x20;
/** Sorting by one unit at a time pays up to this length of what names have in common. */
const RADIX_BYTES_MAX = 64;
/** The end of a name, and every rank of a unit. */
const RADIX_BUCKETS = 0x201;

const LITERALS = ["true", "false", "null"].map((text) => Buffer.from(text));
/** A decimal of up to 15 digits survives a round trip through binary64. */
const KEPT_DIGITS_MAX = 15;
/** The smallest integer with more digits. */
const KEPT_MANTISSA_END = 10 ** KEPT_DIGITS_MAX;
/** All powers of ten that binary64 represents exactly. */
const EXACT_POWERS = Array.from({ length: 23 }, (_, power) => Number(`1e${power}`));
/** Maximum length of a number formatted by ECMAScript, such as `-1.2345678901234567e-308`. */
const NUMBER_CHARS_MAX = 25;
/** Up to this many names are sorted by insertion, since `sort()` allocates more than all else. */
const INSERTED_MEMBERS_MAX = 48;

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
  /** Whether two of the names sorted last are the same. */
  #hasRepeatedName = false;

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
    const end = plainStringEnd(this.#out.bytes, start);
    if (end === NOT_TAKEN) return this.#escapedString(start);
    this.#out.copyOwn(start, end);
    return end;
  }

  /** Copies a string with the escapes of RFC 8785, which are never longer than other ones. */
  #escapedString(start: number): number {
    const { bytes } = this.#out;
    if (bytes[start] !== QUOTE) return NOT_TAKEN;
    let { size } = this.#out;
    bytes[size++] = QUOTE;
    for (let at = start + 1;;) {
      const byte = bytes[at++]!;
      if (byte < BLANK) return NOT_TAKEN;
      if (byte !== BACKSLASH) {
        bytes[size++] = byte;
        if (byte !== QUOTE) continue;
        this.#out.size = size;
        return at;
      }
      const letter = bytes[at++]!;
      if (SHORT_ESCAPES[letter] !== 0) {
        bytes[size++] = BACKSLASH;
        bytes[size++] = letter;
      } else if (letter === SLASH) bytes[size++] = SLASH;
      else {
        let code = letter === LETTER_U ? hexUnit(bytes, at) : NOT_TAKEN;
        at += 4;
        if (code >= 0xd800 && code < 0xe000) {
          const isEscape = bytes[at] === BACKSLASH && bytes[at + 1] === LETTER_U;
          const low = code < 0xdc00 && isEscape ? hexUnit(bytes, at + 2) : 0;
          if (low < 0xdc00 || low >= 0xe000) return NOT_TAKEN;
          code = 0x10000 + (code - 0xd800) * 0x400 + low - 0xdc00;
          at += 6;
        }
        if (code === NOT_TAKEN) return NOT_TAKEN;
        size = putCodePoint(code, bytes, size);
      }
    }
  }

  #literal(at: number): number {
    const literal = LITERALS.find((literal) => startsWith(this.#out.bytes, at, literal));
    if (literal === undefined) return NOT_TAKEN;
    this.#out.copyOwn(at, at + literal.length);
    return at + literal.length;
  }

  #number(start: number): number {
    const { bytes } = this.#out;
    const first = bytes[start] === MINUS ? start + 1 : start;
    const point = digitsEnd(bytes, first);
    const hasLeadingZero = bytes[first] === DIGIT_0;
    if (point === first || hasLeadingZero && point > first + 1) return NOT_TAKEN;
    const hasFraction = bytes[point] === DOT;
    const mantissaEnd = hasFraction ? digitsEnd(bytes, point + 1) : point;
    if (hasFraction && mantissaEnd === point + 1) return NOT_TAKEN;
    const end = exponentEnd(bytes, mantissaEnd);
    if (end === NOT_TAKEN) return NOT_TAKEN;
    // A fraction that begins with 0.0 may need an exponent.
    const isCanonical = hasFraction
      ? bytes[mantissaEnd - 1] !== DIGIT_0 && !(hasLeadingZero && bytes[point + 1] === DIGIT_0)
      : !hasLeadingZero || first === start;
    if (isCanonical && end === mantissaEnd && mantissaEnd - first <= KEPT_DIGITS_MAX) {
      this.#out.copyOwn(start, end);
      return end;
    }
    const mantissa = integerIn(bytes, point + 1, mantissaEnd, integerIn(bytes, first, point, 0));
    const scale = exponentIn(bytes, mantissaEnd, end) - Math.max(0, mantissaEnd - point - 1);
    let value = exactDecimal(mantissa, scale);
    if (value === null) {
      const literal = bytes.toString("latin1", first, end);
      value = Number(literal);
      // Only integer literals can be spelled in a way that is a fault.
      const isValid = end > point && Number.isFinite(value);
      if (!isValid && numberFault(literal) !== null) return NOT_TAKEN;
    }
    this.#out.reserve(NUMBER_CHARS_MAX);
    this.#out.ascii(String(first > start ? -value : value));
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

  /** Copies and records a name; returns the index where its colon must be. */
  #name(start: number): number {
    const { bytes, size } = this.#out;
    const end = this.#string(start);
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
      const byte = out[leftAt]!;
      if (byte !== out[rightAt] || byte === BACKSLASH) {
        const order = rankAt(out, leftAt) - rankAt(out, rightAt);
        if (order !== 0) return order;
      }
      const step = unitBytes(out, leftAt);
      leftAt += step;
      rightAt += step;
    }
    return (leftEnd - leftAt) - (rightEnd - rightAt);
  }

  /** Sorts the members in an object; returns false if two have the same name. */
  #sortMembers(firstMember: number, outStart: number): boolean {
    const members = this.#members;
    const order: number[] = [];
    for (let member = firstMember; member < members.length; member += 3) order.push(member);
    this.#hasRepeatedName = false;
    this.#sortNames(order, 0);
    if (this.#hasRepeatedName) return false;
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

  /** Compares names that are sorted. Every sort compares equal ones. */
  #orderOf(left: number, right: number): number {
    const order = this.#compareNames(left, right);
    if (order === 0) this.#hasRepeatedName = true;
    return order;
  }

  /** Sorts members whose names have the same first `prefixBytes`. */
  #sortNames(order: number[], prefixBytes: number): void {
    if (order.length <= INSERTED_MEMBERS_MAX) {
      for (let index = 1; index < order.length; index++) {
        const member = order[index]!;
        let place = index;
        for (; place > 0; place--) {
          const before = order[place - 1]!;
          if (this.#orderOf(before, member) <= 0) break;
          order[place] = before;
        }
        order[place] = member;
      }
      return;
    }
    if (prefixBytes > RADIX_BYTES_MAX) {
      order.sort((left, right) => this.#orderOf(left, right));
      return;
    }
    const out = this.#out.bytes;
    const buckets: (number[] | undefined)[] = new Array(RADIX_BUCKETS).fill(undefined);
    for (const member of order) {
      const at = this.#members[member]! + prefixBytes;
      const bucket = at < this.#members[member + 1]! ? rankAt(out, at) + 1 : 0;
      (buckets[bucket] ??= []).push(member);
    }
    let size = 0;
    for (let bucket = 0; bucket < RADIX_BUCKETS; bucket++) {
      const members = buckets[bucket];
      if (members === undefined) continue;
      const at = this.#members[members[0]!]! + prefixBytes;
      if (members.length > 1) {
        // The members of the first bucket have the same name.
        if (bucket === 0) this.#hasRepeatedName = true;
        else this.#sortNames(members, prefixBytes + unitBytes(out, at));
      }
      for (const member of members) order[size++] = member;
    }
  }

  #byte(byte: number): void {
    this.#out.bytes[this.#out.size++] = byte;
  }
}

/**
 * Returns the value of a decimal of few digits, rounded once as its literal is, since both operands
 * are exact; null for any other one.
 */
function exactDecimal(mantissa: number, scale: number): number | null {
  const power = EXACT_POWERS[Math.abs(scale)];
  if (mantissa >= KEPT_MANTISSA_END || power === undefined) return null;
  return scale < 0 ? mantissa / power : mantissa * power;
}

/** Returns `before` followed by the digits in a range. */
function integerIn(bytes: Uint8Array, start: number, end: number, before: number): number {
  let value = before;
  for (let at = start; at < end; at++) value = value * 10 + bytes[at]! - DIGIT_0;
  return value;
}

function digitsEnd(bytes: Uint8Array, at: number): number {
  while (isDigit(bytes[at]!)) at++;
  return at;
}

/** Returns the end of an optional exponent; NOT_TAKEN if it has no digits. */
function exponentEnd(bytes: Uint8Array, start: number): number {
  if ((bytes[start]! | BLANK) !== LETTER_E) return start;
  const sign = bytes[start + 1];
  const first = sign === PLUS || sign === MINUS ? start + 2 : start + 1;
  const end = digitsEnd(bytes, first);
  return end === first ? NOT_TAKEN : end;
}

function exponentIn(bytes: Uint8Array, start: number, end: number): number {
  const isSigned = !isDigit(bytes[start + 1]!);
  const power = integerIn(bytes, start + (isSigned ? 2 : 1), end, 0);
  return bytes[start + 1] === MINUS ? -power : power;
}
