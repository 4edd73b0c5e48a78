/**
 * The exact way to check a JSON text: finds the first fault and says where it is. Only a body that
 * the fast way refused comes here. Complete on its own, so that tests can hold the fast way to it.
 * It never recurses.
 */
import { JsonNesting } from "./json_nesting.ts";
import { numberFault } from "./json_number.ts";
import { utf8Bytes, validUtf8Bytes } from "./utf8.ts";

/** What an error message quotes of a client's text, in UTF-16 code units. */
const QUOTED_TEXT_MAX = 64;

export interface JsonFault {
  /** What is wrong, without a period and without the place. */
  message: string;
  offsetBytes: number;
  /** The outermost steps to the value at fault: member names and array indexes. */
  path: (string | number)[];
}

/** The first fault of a text against RFC 8259 and the rules of strict JSON; null for none. */
export function findJsonFault(bytes: Uint8Array): JsonFault | null {
  const validBytes = validUtf8Bytes(bytes);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, validBytes));
  const endFault = validBytes < bytes.length ? "malformed UTF-8" : "unexpected end of the text";
  const finder = new FaultFinder(text, endFault);
  const fault = finder.find();
  if (fault !== null || validBytes === bytes.length) return fault;
  return { message: endFault, offsetBytes: validBytes, path: [] };
}

/** A client's text as a JSON string for a message, cut to a bounded length. */
export function quoteShort(text: string): string {
  const isLong = text.length > QUOTED_TEXT_MAX;
  return JSON.stringify(isLong ? text.slice(0, QUOTED_TEXT_MAX) + "..." : text);
}

/** What may come next. */
type Expected = "value" | "first" | "separator";

/** Parts take the index where they begin and return where they end, or FAULT when one was found. */
const FAULT = -1;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const DIGIT_0 = 0x30;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LOWER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** What may follow a backslash, besides `u`. */
const ESCAPED_CHARS = '"\\/bfnrt';

class FaultFinder {
  readonly #text: string;
  readonly #endFault: string;
  readonly #nesting = new JsonNesting();
  #expected: Expected = "value";
  #fault: JsonFault | null = null;

  constructor(text: string, endFault: string) {
    this.#text = text;
    this.#endFault = endFault;
  }

  find(): JsonFault | null {
    let at = this.#skipWhitespace(0);
    while (at !== FAULT && !(this.#expected === "separator" && this.#nesting.depth === 0)) {
      at = this.#step(at);
      if (at !== FAULT) at = this.#skipWhitespace(at);
    }
    if (at !== FAULT && at < this.#text.length) this.#failSyntax(at);
    return this.#fault;
  }

  #step(at: number): number {
    if (this.#expected === "value") return this.#value(at);
    const unit = this.#text.charCodeAt(at);
    const isInObject = this.#nesting.isInObject;
    if (unit === (isInObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
      this.#nesting.close();
      this.#expected = "separator";
      return at + 1;
    }
    const isFirst = this.#expected === "first";
    if (!isFirst && unit !== COMMA) return this.#failSyntax(at);
    this.#expected = "value";
    const itemAt = isFirst ? at : at + 1;
    if (isInObject) return this.#memberName(this.#skipWhitespace(itemAt));
    if (!isFirst) this.#nesting.nextItem();
    return itemAt;
  }

  #value(at: number): number {
    const unit = this.#text.charCodeAt(at);
    if (unit === OPEN_OBJECT || unit === OPEN_ARRAY) {
      this.#nesting.open(unit === OPEN_OBJECT ? "object" : "array");
      this.#expected = "first";
      return at + 1;
    }
    this.#expected = "separator";
    if (unit === QUOTE) return this.#string(at);
    if (unit === MINUS || isDigit(unit)) return this.#number(at);
    for (const literal of ["true", "false", "null"]) {
      if (this.#text.startsWith(literal, at)) return at + literal.length;
    }
    return this.#failSyntax(at);
  }

  /** A name and its colon. */
  #memberName(startAt: number): number {
    if (this.#text.charCodeAt(startAt) !== QUOTE) return this.#failSyntax(startAt);
    const endAt = this.#string(startAt);
    if (endAt === FAULT) return FAULT;
    const name: string = JSON.parse(this.#text.slice(startAt, endAt));
    if (!this.#nesting.addName(name)) {
      return this.#fail(`member ${quoteShort(name)} appears twice`, startAt);
    }
    const colonAt = this.#skipWhitespace(endAt);
    if (this.#text.charCodeAt(colonAt) !== COLON) return this.#failSyntax(colonAt);
    return colonAt + 1;
  }

  #string(startAt: number): number {
    let at = startAt + 1;
    while (at < this.#text.length) {
      const unit = this.#text.charCodeAt(at);
      if (unit === QUOTE) return at + 1;
      if (unit < 0x20) return this.#fail("unescaped control character in a string", at);
      at = unit === BACKSLASH ? this.#escape(at) : at + 1;
      if (at === FAULT) return FAULT;
    }
    return this.#failSyntax(at);
  }

  #escape(startAt: number): number {
    if (startAt + 1 >= this.#text.length) return this.#failSyntax(startAt + 1);
    if (this.#text.charCodeAt(startAt + 1) !== LOWER_U) {
      const isKnown = ESCAPED_CHARS.includes(this.#text.charAt(startAt + 1));
      return isKnown ? startAt + 2 : this.#fail("unknown escape in a string", startAt);
    }
    const unit = this.#unicodeEscape(startAt);
    if (unit === null) return this.#fail("malformed \\u escape in a string", startAt);
    if (unit < 0xd800 || unit > 0xdfff) return startAt + 6;
    const low = unit < 0xdc00 ? this.#unicodeEscape(startAt + 6) : null;
    const isPair = low !== null && low >= 0xdc00 && low <= 0xdfff;
    return isPair ? startAt + 12 : this.#fail("unpaired surrogate escape in a string", startAt);
  }

  /** Code unit of a `\uXXXX` escape; null when there is none here. */
  #unicodeEscape(at: number): number | null {
    const escape = this.#text.slice(at, at + 6);
    return /^\\u[0-9a-fA-F]{4}$/.test(escape) ? parseInt(escape.slice(2), 16) : null;
  }

  #number(startAt: number): number {
    const intAt = this.#text.charCodeAt(startAt) === MINUS ? startAt + 1 : startAt;
    const hasLeadingZero = this.#text.charCodeAt(intAt) === DIGIT_0;
    let at = hasLeadingZero ? intAt + 1 : this.#digits(intAt);
    if (at !== FAULT && this.#text.charCodeAt(at) === DOT) at = this.#digits(at + 1);
    if (at !== FAULT && /^[eE]$/.test(this.#text.charAt(at))) {
      at = this.#digits(/^[+-]$/.test(this.#text.charAt(at + 1)) ? at + 2 : at + 1);
    }
    if (at === FAULT) return FAULT;
    const literal = this.#text.slice(startAt, at);
    const fault = numberFault(literal);
    return fault === null ? at : this.#fail(`number ${quoteShort(literal)} ${fault}`, startAt);
  }

  /** One digit or more. */
  #digits(startAt: number): number {
    let at = startAt;
    while (isDigit(this.#text.charCodeAt(at))) at++;
    return at > startAt ? at : this.#failSyntax(at);
  }

  #skipWhitespace(startAt: number): number {
    let at = startAt;
    while (isWhitespace(this.#text.charCodeAt(at))) at++;
    return at;
  }

  #failSyntax(at: number): typeof FAULT {
    if (at >= this.#text.length) return this.#fail(this.#endFault, this.#text.length);
    const char = String.fromCodePoint(this.#text.codePointAt(at)!);
    return this.#fail(`unexpected ${JSON.stringify(char)}`, at);
  }

  #fail(message: string, at: number): typeof FAULT {
    const offsetBytes = utf8Bytes(this.#text.slice(0, at));
    this.#fault = { message, offsetBytes, path: this.#nesting.path() };
    return FAULT;
  }
}

/** charCodeAt() gives NaN past the end, which is neither digit nor whitespace. */
function isDigit(unit: number): boolean {
  return unit >= DIGIT_0 && unit <= 0x39;
}

function isWhitespace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}
