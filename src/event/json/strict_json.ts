/**
 * Strict JSON: one value in UTF-8 without a byte order mark, no duplicate member names, no unpaired
 * surrogates, no number that binary64 can't hold. One pass builds the value and finds the first
 * fault. Also runs in browsers.
 *
 * Objects never go through `JSON.parse`: V8 can confuse an escaped member name with one it has seen
 * before. After `{"\\":1}` it may parse `{"\n":1}` as `{"\\":1}` (seen in V8 13.6 and 15.0), which
 * would silently change a client's data.
 */
import { JSON_DEPTH_MAX } from "../../limits.ts";
import { numberFault } from "./json_number.ts";
import type { JsonObject, JsonValue } from "./json_value.ts";
import { cutText, quoteShort } from "./quote_string.ts";
import { utf8Bytes, validUtf8Bytes } from "./utf8.ts";

export type { JsonObject, JsonValue } from "./json_value.ts";

/** Reported steps of a path. */
const PATH_STEPS_MAX = 16;
/** Objects with more names use a set; a few names are compared one by one. */
const COMPARED_NAMES_MAX = 16;

export interface JsonFault {
  /** `syntax`: not JSON in UTF-8. `rule`: JSON that breaks a rule of strict JSON. */
  kind: "syntax" | "rule";
  /** Reason without location. */
  message: string;
  /** Start of the fault in the text. */
  offsetBytes: number;
  /** Outermost steps to the faulty value: member names and array indices. */
  path: (string | number)[];
}

/** Thrown for text that is not strict JSON. */
export class JsonError extends Error {
  override name = "JsonError";
  readonly fault: JsonFault;

  constructor(fault: JsonFault) {
    const { kind, message, offsetBytes, path } = fault;
    const place = kind === "syntax" ? `not valid JSON at byte ${offsetBytes}` : formatPath(path);
    super(place === "" ? message : `${place}: ${message}`);
    this.fault = fault;
  }
}

/**
 * Parses a body. Containers nested deeper than JSON_DEPTH_MAX are checked but replaced by 0: every
 * caller rejects that depth, and building them would let a hostile body exhaust memory.
 *
 * @throws {JsonError} with the first fault.
 */
export function parseJson(bytes: Uint8Array): JsonValue {
  let text;
  let cutOffBy = null;
  try {
    text = UTF8.decode(bytes);
  } catch {
    text = UTF8.decode(bytes.subarray(0, validUtf8Bytes(bytes)));
    cutOffBy = "malformed UTF-8";
  }
  return new JsonReader(text, JSON_DEPTH_MAX, cutOffBy).read();
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Matches every text with an escaped member name, with false positives. */
const MAYBE_ESCAPED_NAME = /\\[^][^"\\]*"\s*:/;

/**
 * Parses text the service wrote: `JSON.parse` without its bug on escaped names.
 *
 * @throws {SyntaxError} or {JsonError} when it is not JSON.
 */
// deno-lint-ignore no-explicit-any -- replaces JSON.parse
export function parseJsonText(text: string): any {
  return MAYBE_ESCAPED_NAME.test(text) ? new JsonReader(text, Infinity).read() : JSON.parse(text);
}

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const DIGIT_0 = 0x30;
const COLON = 0x3a;
const UPPER_E = 0x45;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LOWER_E = 0x65;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Characters after a backslash, besides `u`. */
const ESCAPED_CHARS = '"\\/bfnrt';

class JsonReader {
  readonly #text: string;
  readonly #depthMax: number;
  /** Why the text ends early; null if it doesn't. */
  readonly #cutOffBy: string | null;
  #at = 0;
  /** Current member name or index of each open container. */
  readonly #path: (string | number)[] = [];

  constructor(text: string, depthMax: number, cutOffBy: string | null = null) {
    this.#text = text;
    this.#depthMax = depthMax;
    this.#cutOffBy = cutOffBy;
  }

  read(): JsonValue {
    const value = this.#value();
    this.#peek();
    if (this.#at < this.#text.length || this.#cutOffBy !== null) this.#failSyntax();
    return value;
  }

  #value(): JsonValue {
    const unit = this.#peek();
    if (unit !== OPEN_OBJECT && unit !== OPEN_ARRAY) return this.#scalar(unit);
    if (this.#path.length >= this.#depthMax) return this.#skipContainers();
    this.#at++;
    return unit === OPEN_OBJECT ? this.#object() : this.#array();
  }

  #object(): JsonObject {
    const object: JsonObject = {};
    if (this.#skip(CLOSE_OBJECT)) return object;
    do {
      const name = this.#name((name) => Object.hasOwn(object, name));
      this.#path.push(name);
      setMember(object, name, this.#value());
      this.#path.pop();
    } while (this.#skip(COMMA));
    this.#expect(CLOSE_OBJECT);
    return object;
  }

  #array(): JsonValue[] {
    const items: JsonValue[] = [];
    if (this.#skip(CLOSE_ARRAY)) return items;
    do {
      this.#path.push(items.length);
      items.push(this.#value());
      this.#path.pop();
    } while (this.#skip(COMMA));
    this.#expect(CLOSE_ARRAY);
    return items;
  }

  /** Checks containers without building them. Iterative: a body can nest 32 million levels. */
  #skipContainers(): JsonValue {
    const open = new OpenContainers(this.#text.length - this.#at);
    const isTaken = (name: string) => open.addName(name);
    do {
      const unit = this.#peek();
      const opens = unit === OPEN_OBJECT || unit === OPEN_ARRAY;
      if (opens) {
        open.push(unit === OPEN_OBJECT);
        this.#at++;
      } else this.#scalar(unit);
      let hasEnded = !opens;
      while (open.depth > 0 && this.#skip(open.isInObject ? CLOSE_OBJECT : CLOSE_ARRAY)) {
        open.pop();
        hasEnded = true;
      }
      if (open.depth === 0) break;
      if (hasEnded) this.#expect(COMMA);
      if (open.isInObject) this.#name(isTaken);
    } while (true);
    return 0;
  }

  #name(isTaken: (name: string) => boolean): string {
    if (this.#peek() !== QUOTE) this.#failSyntax();
    const startAt = this.#at;
    const name = this.#string();
    if (isTaken(name)) this.#failRule(`member ${quoteShort(name)} appears twice`, startAt);
    this.#expect(COLON);
    return name;
  }

  #scalar(unit: number): JsonValue {
    if (unit === QUOTE) return this.#string();
    if (unit === MINUS || isDigit(unit)) return this.#number();
    if (this.#literal("true")) return true;
    if (this.#literal("false")) return false;
    if (this.#literal("null")) return null;
    return this.#failSyntax();
  }

  #literal(literal: string): boolean {
    if (!this.#text.startsWith(literal, this.#at)) return false;
    this.#at += literal.length;
    return true;
  }

  #string(): string {
    const startAt = this.#at++;
    let hasEscape = false;
    for (;; this.#at++) {
      const unit = this.#text.charCodeAt(this.#at);
      if (unit === QUOTE) break;
      if (unit === BACKSLASH) {
        hasEscape = true;
        this.#skipEscape();
      } else if (unit < 0x20) this.#failSyntax("unescaped control character in a string");
      else if (Number.isNaN(unit)) this.#failSyntax();
    }
    this.#at++;
    return hasEscape
      ? JSON.parse(this.#text.slice(startAt, this.#at))
      : this.#text.slice(startAt + 1, this.#at - 1);
  }

  /** Advances to the last character of an escape or of a surrogate pair of escapes. */
  #skipEscape(): void {
    const next = this.#text.charAt(this.#at + 1);
    if (next === "") {
      this.#at++;
      this.#failSyntax();
    }
    if (next !== "u") {
      if (!ESCAPED_CHARS.includes(next)) this.#failSyntax("unknown escape in a string");
      this.#at += 1;
      return;
    }
    const unit = this.#unicodeEscape(this.#at);
    if (unit === null) return this.#failSyntax("malformed \\u escape in a string");
    const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
    if (isSurrogate) {
      const low = unit < 0xdc00 ? this.#unicodeEscape(this.#at + 6) : null;
      const isPair = low !== null && low >= 0xdc00 && low <= 0xdfff;
      if (!isPair) this.#failRule("unpaired surrogate escape in a string", this.#at);
    }
    this.#at += isSurrogate ? 11 : 5;
  }

  /** Returns the code unit of a `\uXXXX` escape, or null. */
  #unicodeEscape(at: number): number | null {
    const escape = this.#text.slice(at, at + 6);
    return /^\\u[0-9a-fA-F]{4}$/.test(escape) ? parseInt(escape.slice(2), 16) : null;
  }

  #number(): number {
    const startAt = this.#at;
    if (this.#text.charCodeAt(this.#at) === MINUS) this.#at++;
    if (this.#text.charCodeAt(this.#at) === DIGIT_0) this.#at++;
    else this.#skipDigits();
    if (this.#text.charCodeAt(this.#at) === DOT) {
      this.#at++;
      this.#skipDigits();
    }
    const exponentUnit = this.#text.charCodeAt(this.#at);
    if (exponentUnit === LOWER_E || exponentUnit === UPPER_E) {
      this.#at++;
      const sign = this.#text.charCodeAt(this.#at);
      if (sign === PLUS || sign === MINUS) this.#at++;
      this.#skipDigits();
    }
    const literal = this.#text.slice(startAt, this.#at);
    const value = Number(literal);
    const fault = Number.isSafeInteger(value) ? null : numberFault(literal);
    if (fault === null) return value;
    return this.#failRule(`${cutText(literal)} ${fault}; send it as a string`, startAt);
  }

  /** Requires at least one digit. */
  #skipDigits(): void {
    const startAt = this.#at;
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at++;
    if (this.#at === startAt) this.#failSyntax();
  }

  /** Skips whitespace and returns the next code unit; NaN at the end of the text. */
  #peek(): number {
    let unit = this.#text.charCodeAt(this.#at);
    while (unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09) {
      unit = this.#text.charCodeAt(++this.#at);
    }
    return unit;
  }

  /** Skips a character if it comes next. */
  #skip(unit: number): boolean {
    if (this.#peek() !== unit) return false;
    this.#at++;
    return true;
  }

  #expect(unit: number): void {
    if (!this.#skip(unit)) this.#failSyntax();
  }

  #failSyntax(message: string = this.#unexpected()): never {
    this.#fail("syntax", message, this.#at);
  }

  #unexpected(): string {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) return this.#cutOffBy ?? "unexpected end of the text";
    return `unexpected ${JSON.stringify(String.fromCodePoint(code))}`;
  }

  #failRule(message: string, at: number): never {
    this.#fail("rule", message, at);
  }

  #fail(kind: JsonFault["kind"], message: string, at: number): never {
    const offsetBytes = utf8Bytes(this.#text.slice(0, at));
    throw new JsonError({ kind, message, offsetBytes, path: this.#path.slice(0, PATH_STEPS_MAX) });
  }
}

/** A stack of open containers in flat arrays: there may be as many as the body has bytes. */
class OpenContainers {
  /** Per level 0 for an array; for an object, the index in `#names` of its first name, plus 1. */
  readonly #levels: Uint32Array;
  /** Names of all open objects, outermost first. */
  readonly #names: string[] = [];
  /** Name sets of large open objects, by depth. */
  readonly #nameSets = new Map<number, Set<string>>();
  depth = 0;

  constructor(depthMax: number) {
    // The system commits only the pages that are written.
    this.#levels = new Uint32Array(depthMax);
  }

  push(isObject: boolean): void {
    this.#levels[this.depth++] = isObject ? this.#names.length + 1 : 0;
  }

  pop(): void {
    if (this.isInObject) this.#names.length = this.#innermost - 1;
    this.#nameSets.delete(this.depth--);
  }

  get isInObject(): boolean {
    return this.#innermost > 0;
  }

  /** Adds a name to the innermost object. Returns whether it is a duplicate. */
  addName(name: string): boolean {
    const names = this.#names;
    const start = this.#innermost - 1;
    if (names.length - start < COMPARED_NAMES_MAX) {
      if (names.includes(name, start)) return true;
      names.push(name);
      return false;
    }
    let set = this.#nameSets.get(this.depth);
    if (set === undefined) {
      set = new Set(names.slice(start));
      this.#nameSets.set(this.depth, set);
    }
    const size = set.size;
    return set.add(name).size === size;
  }

  get #innermost(): number {
    return this.#levels[this.depth - 1]!;
  }
}

/** Formats a path like `events[3].payload["a b"]`. */
function formatPath(path: readonly (string | number)[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (!/^[a-z_]\w{0,63}$/i.test(step)) text += `[${quoteShort(step)}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return path.length < PATH_STEPS_MAX ? text : `${text}...`;
}

/** Defines `__proto__` as a member: an assignment would set the prototype. */
function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else {
    const settings = { writable: true, enumerable: true, configurable: true };
    Object.defineProperty(object, name, { value, ...settings });
  }
}

function isDigit(unit: number): boolean {
  return unit >= DIGIT_0 && unit <= 0x39;
}
