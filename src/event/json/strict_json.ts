/**
 * Parses strict JSON: one value in UTF-8 without a byte order mark, duplicate member names,
 * unpaired surrogates or numbers that binary64 cannot represent. One pass builds the value and
 * finds the first fault.
 *
 * Objects are never passed to `JSON.parse`: V8 can confuse an escaped member name with an earlier
 * one. After `{"\\":1}` it may parse `{"\n":1}` as `{"\\":1}` (observed in V8 13.6 and 15.0), which
 * would silently change a client's data.
 */
import { Buffer, isUtf8 } from "node:buffer";
import { JSON_DEPTH_MAX } from "../../limits.ts";

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
export type JsonObject = { [name: string]: JsonValue };

/** Returns whether a value is a JSON object, not null or an array. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Skips values of members, which the parser then need not build. */
export interface ValueSkipper {
  wants(path: readonly (string | number)[]): boolean;
  /** Returns the UTF-16 length of the value at a byte offset; 0 to let the parser read it. */
  lengthAt(startByte: number): number;
}

/** Stands for a skipped value. */
export const SKIPPED = "skipped";

/** Maximum number of path components in an error message. */
const PATH_STEPS_MAX = 16;
/** Maximum number of containers open deeper than JSON_DEPTH_MAX. Their name sets take 64 MiB. */
const OPEN_CONTAINERS_MAX = 2 ** 20;

/** Thrown for input that is not strict JSON. */
export class JsonError extends Error {
  override name = "JsonError";
  /** `syntax`: not valid UTF-8 JSON. `rule`: JSON that violates a rule of strict JSON. */
  readonly kind: "syntax" | "rule";
  /** Outermost components of the path to the faulty value: member names and array indices. */
  readonly path: readonly (string | number)[];

  constructor(kind: JsonError["kind"], message: string, path: JsonError["path"]) {
    super(message);
    this.kind = kind;
    this.path = path;
  }
}

/**
 * Parses a body. Containers nested deeper than JSON_DEPTH_MAX are checked but replaced by 0: every
 * caller rejects that depth, and building them would let a hostile body exhaust memory.
 *
 * @param skipper may skip values of members.
 * @throws {JsonError} for the first fault.
 */
export function parseJson(bytes: Uint8Array, skipper: ValueSkipper | null = null): JsonValue {
  // `toString()` keeps a byte order mark, which the reader rejects as an unexpected character.
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
  if (isUtf8(bytes)) return new JsonReader(text, JSON_DEPTH_MAX, null, skipper).read();
  return new JsonReader(validStart(bytes, text), JSON_DEPTH_MAX, "malformed UTF-8").read();
}

/**
 * Returns the prefix before the first malformed sequence.
 * @param text the decoded input, with U+FFFD for each malformed sequence.
 */
function validStart(bytes: Uint8Array, text: string): string {
  const encoded = Buffer.from(text);
  const end = bytes.findIndex((byte, at) => byte !== encoded[at]);
  // As a stream, the decoder leaves out a sequence that `end` interrupts.
  return new TextDecoder("utf-8", { ignoreBOM: true })
    .decode(bytes.subarray(0, end), { stream: true });
}

/**
 * Checks that a JSON number literal survives conversion to binary64.
 * @returns null if it does, otherwise an error message to append, such as `is too large for ...`.
 */
export function numberFault(literal: string): string | null {
  const value = Number(literal);
  if (!Number.isFinite(value)) return "is too large for a binary64 number";
  const isIntegerLiteral = !/[.eE]/.test(literal);
  if (isIntegerLiteral && Math.abs(value) > Number.MAX_SAFE_INTEGER && String(value) !== literal) {
    return `is not how RFC 8785 writes its binary64 value, ${JSON.stringify(value)}`;
  }
  return null;
}

/** Matches every document with an escaped member name; may match others. */
const MAYBE_ESCAPED_NAME = /\\[^][^"\\]*"\s*:/;

/**
 * Parses JSON that the service wrote. Avoids the `JSON.parse` bug described above.
 *
 * @throws {SyntaxError | JsonError} if `text` is not JSON.
 */
// deno-lint-ignore no-explicit-any -- replaces JSON.parse
export function parseJsonText(text: string): any {
  return MAYBE_ESCAPED_NAME.test(text) ? new JsonReader(text, Infinity).read() : JSON.parse(text);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const WORD = /true|false|null/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

class JsonReader {
  readonly #text: string;
  readonly #depthMax: number;
  /** Why the input was cut off, for the error message; null for a complete input. */
  readonly #cutOffBy: string | null;
  #at = 0;
  /** Current member name or index in each open container. */
  readonly #path: (string | number)[] = [];
  readonly #skipper: ValueSkipper | null;
  /** The last offset that `#skipper` was asked for, in code units and bytes. */
  #mark = { at: 0, byte: 0 };

  constructor(
    text: string,
    depthMax: number,
    cutOffBy: string | null = null,
    skipper: ValueSkipper | null = null,
  ) {
    this.#text = text;
    this.#depthMax = depthMax;
    this.#cutOffBy = cutOffBy;
    this.#skipper = skipper;
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
      const name = this.#name(object);
      this.#path.push(name);
      setMember(object, name, this.#isSkipped() ? SKIPPED : this.#value());
      this.#path.pop();
    } while (this.#skip(COMMA));
    this.#expect(CLOSE_OBJECT);
    return object;
  }

  /** Whether `#skipper` skips the value that comes next. */
  #isSkipped(): boolean {
    if (this.#skipper === null || !this.#skipper.wants(this.#path)) return false;
    this.#peek();
    const mark = this.#mark;
    const byte = mark.byte + Buffer.byteLength(this.#text.slice(mark.at, this.#at));
    this.#mark = { at: this.#at, byte };
    const length = this.#skipper.lengthAt(byte);
    this.#at += length;
    return length > 0;
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

  /** Checks containers without building them. Iterative, since a body can be nested very deeply. */
  #skipContainers(): JsonValue {
    /** The names in each open object; null for an open array. */
    const open: (JsonObject | null)[] = [];
    do {
      const unit = this.#peek();
      const opens = unit === OPEN_OBJECT || unit === OPEN_ARRAY;
      if (opens) {
        if (open.length === OPEN_CONTAINERS_MAX) {
          this.#failRule(`is nested more than ${OPEN_CONTAINERS_MAX} levels deep`);
        }
        open.push(unit === OPEN_OBJECT ? {} : null);
        this.#at++;
      } else this.#scalar(unit);
      let hasEnded = !opens;
      while (open.length > 0 && this.#skip(open.at(-1) === null ? CLOSE_ARRAY : CLOSE_OBJECT)) {
        open.pop();
        hasEnded = true;
      }
      if (open.length === 0) break;
      if (hasEnded) this.#expect(COMMA);
      const names = open.at(-1);
      if (names) setMember(names, this.#name(names), 0);
    } while (true);
    return 0;
  }

  /** Reads the next member name in an object, and its colon. */
  #name(object: JsonObject): string {
    if (this.#peek() !== QUOTE) this.#failSyntax();
    const name = this.#string();
    if (Object.hasOwn(object, name)) this.#failRule(`member ${quoteShort(name)} appears twice`);
    this.#expect(COLON);
    return name;
  }

  #scalar(unit: number): JsonValue {
    if (unit === QUOTE) return this.#string();
    const number = this.#match(NUMBER);
    if (number !== null) return this.#number(number);
    const word = this.#match(WORD);
    return word === null ? this.#failSyntax() : JSON.parse(word);
  }

  #string(): string {
    const startAt = this.#at++;
    let hasEscape = false;
    for (let unit = NaN; unit !== QUOTE;) {
      unit = this.#text.charCodeAt(this.#at);
      if (unit === BACKSLASH) {
        hasEscape = true;
        if (this.#match(ESCAPE) === null) this.#failSyntax("malformed escape in a string");
      } else if (unit >= 0x20) this.#at++;
      else this.#failSyntax(unit < 0x20 ? "unescaped control character in a string" : undefined);
    }
    if (!hasEscape) return this.#text.slice(startAt + 1, this.#at - 1);
    const text: string = JSON.parse(this.#text.slice(startAt, this.#at));
    return text.isWellFormed() ? text : this.#failRule("unpaired surrogate escape in a string");
  }

  #number(literal: string): number {
    const value = Number(literal);
    const fault = Number.isSafeInteger(value) ? null : numberFault(literal);
    if (fault === null) return value;
    return this.#failRule(`${cutText(literal)} ${fault}; send it as a string`);
  }

  /** Advances past a match of a sticky expression; returns null if there is none. */
  #match(expression: RegExp): string | null {
    const start = expression.lastIndex = this.#at;
    if (!expression.test(this.#text)) return null;
    this.#at = expression.lastIndex;
    return this.#text.slice(start, this.#at);
  }

  /** Skips whitespace and returns the next code unit; NaN at the end of input. */
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
    const offsetBytes = Buffer.byteLength(this.#text.slice(0, this.#at));
    const place = `not valid JSON at byte ${offsetBytes}`;
    throw new JsonError("syntax", `${place}: ${message}`, this.#path.slice(0, PATH_STEPS_MAX));
  }

  #unexpected(): string {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) return this.#cutOffBy ?? "unexpected end of input";
    return `unexpected ${JSON.stringify(String.fromCodePoint(code))}`;
  }

  #failRule(message: string): never {
    const path = this.#path.slice(0, PATH_STEPS_MAX);
    const place = formatPath(path);
    throw new JsonError("rule", place === "" ? message : `${place}: ${message}`, path);
  }
}

/** Maximum length of client input quoted in an error message, in UTF-16 code units. */
const QUOTED_TEXT_MAX = 64;

/** Truncates and quotes client input for a message. */
export function quoteShort(text: string): string {
  return JSON.stringify(cutText(text));
}

/** Truncates client input for a message. */
function cutText(text: string): string {
  return text.length > QUOTED_TEXT_MAX ? text.slice(0, QUOTED_TEXT_MAX) + "..." : text;
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

/** Sets a member. Defines `__proto__`, since an assignment would set the prototype. */
function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else {
    const settings = { writable: true, enumerable: true, configurable: true };
    Object.defineProperty(object, name, { value, ...settings });
  }
}
