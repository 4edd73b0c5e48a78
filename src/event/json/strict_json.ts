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
type Container = JsonObject | JsonValue[];

/** Returns whether a value is a JSON object, not null or an array. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Member names and array indices, from the outermost. */
type Path = readonly (string | number)[];

/** Returns the end of the value at a byte offset if it need not be built, otherwise 0. */
export type ValueSkipper = (path: Path, start: number) => number;

/** Stands for a skipped value. */
export const SKIPPED = "skipped";

/** Maximum number of path components in an error message. */
const PATH_STEPS_MAX = 16;
/** Maximum number of open containers. Their name sets take 64 MiB. */
const OPEN_CONTAINERS_MAX = 2 ** 20;

/** Thrown for input that is not strict JSON. */
export class JsonError extends Error {
  override name = "JsonError";
  /** `syntax`: not valid UTF-8 JSON. `rule`: JSON that violates a rule of strict JSON. */
  readonly kind: "syntax" | "rule";
  /** Outermost components of the path to the faulty value. */
  readonly path: Path;

  constructor(kind: JsonError["kind"], message: string, path: Path) {
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
export function parseJson(bytes: Uint8Array, skipper: ValueSkipper = () => 0): JsonValue {
  if (isUtf8(bytes)) return new JsonReader(bytes, JSON_DEPTH_MAX, null, skipper).read();
  return new JsonReader(validStart(bytes), JSON_DEPTH_MAX, "malformed UTF-8").read();
}

/** Returns a copy of the bytes before the first malformed sequence. */
function validStart(bytes: Uint8Array): Buffer {
  const encoded = Buffer.from(bufferOf(bytes).toString());
  const end = bytes.findIndex((byte, at) => byte !== encoded[at]);
  // As a stream, the decoder leaves out a sequence that `end` interrupts.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return Buffer.from(decoder.decode(bytes.subarray(0, end), { stream: true }));
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
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
  if (!MAYBE_ESCAPED_NAME.test(text)) return JSON.parse(text);
  return new JsonReader(Buffer.from(text), Infinity).read();
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

const WORD = /true|false|null/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

class JsonReader {
  /** One character per byte, so that offsets count bytes. */
  readonly #text: string;
  readonly #depthMax: number;
  /** Why the input was cut off, for the error message; null for a complete input. */
  readonly #cutOffBy: string | null;
  readonly #skipper: ValueSkipper;
  #at = 0;
  /** Current member name or index in each open container. */
  readonly #path: (string | number)[] = [];

  constructor(
    bytes: Uint8Array,
    depthMax: number,
    cutOffBy: string | null = null,
    skipper: ValueSkipper = () => 0,
  ) {
    this.#text = bufferOf(bytes).toString("latin1");
    this.#depthMax = depthMax;
    this.#cutOffBy = cutOffBy;
    this.#skipper = skipper;
  }

  /** Not recursive, since a body can be nested very deeply. */
  read(): JsonValue {
    const open: Container[] = [];
    for (;;) {
      let value = this.#begin();
      if (isContainer(value) && !this.#skip(endOf(value))) {
        if (open.push(value) > OPEN_CONTAINERS_MAX) {
          this.#failRule(`is nested more than ${OPEN_CONTAINERS_MAX} levels deep`);
        }
        this.#enterMember(value);
        continue;
      }
      for (;;) {
        if (open.length >= this.#depthMax && isContainer(value)) value = 0;
        const container = open.at(-1);
        if (container === undefined) {
          if (this.#peek() !== "" || this.#cutOffBy !== null) this.#failSyntax();
          return value;
        }
        const step = this.#path.pop();
        if (!Array.isArray(container)) setMember(container, String(step), value);
        else if (open.length <= this.#depthMax) container.push(value);
        if (this.#skip(",")) {
          this.#enterMember(container);
          break;
        }
        this.#expect(endOf(container));
        value = container;
        open.pop();
      }
    }
  }

  /** Reads the next scalar or the start of a container, which is returned empty. */
  #begin(): JsonValue {
    const next = this.#peek();
    const skippedEnd = this.#skipper(this.#path, this.#at);
    if (skippedEnd > 0) {
      this.#at = skippedEnd;
      return SKIPPED;
    }
    if (this.#skip("{")) return {};
    return this.#skip("[") ? [] : this.#scalar(next);
  }

  /** Enters the next element or member; reads a member's name and colon. */
  #enterMember(container: Container): void {
    if (Array.isArray(container)) return void this.#path.push(container.length);
    if (this.#peek() !== '"') this.#failSyntax();
    const name = this.#string();
    if (Object.hasOwn(container, name)) this.#failRule(`member ${quoteShort(name)} appears twice`);
    this.#expect(":");
    this.#path.push(name);
  }

  #scalar(first: string): JsonValue {
    if (first === '"') return this.#string();
    const number = this.#match(NUMBER);
    if (number !== null) return this.#number(number);
    const word = this.#match(WORD);
    return word === null ? this.#failSyntax() : JSON.parse(word);
  }

  #string(): string {
    const startAt = this.#at++;
    let isPlain = true;
    for (let unit = NaN; unit !== QUOTE;) {
      unit = this.#text.charCodeAt(this.#at);
      if (unit === BACKSLASH || unit >= 0x80) isPlain = false;
      if (unit === BACKSLASH) {
        if (this.#match(ESCAPE) === null) this.#failSyntax("malformed escape in a string");
      } else if (unit >= 0x20) this.#at++;
      else this.#failSyntax(unit < 0x20 ? "unescaped control character in a string" : undefined);
    }
    if (isPlain) return this.#text.slice(startAt + 1, this.#at - 1);
    const text: string = JSON.parse(this.#utf8(startAt, this.#at));
    return text.isWellFormed() ? text : this.#failRule("unpaired surrogate escape in a string");
  }

  #utf8(start: number, end: number): string {
    return Buffer.from(this.#text.slice(start, end), "latin1").toString();
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

  /** Skips whitespace and returns the next character; an empty string at the end of input. */
  #peek(): string {
    for (;; this.#at++) {
      const next = this.#text.charAt(this.#at);
      if (next !== " " && next !== "\n" && next !== "\r" && next !== "\t") return next;
    }
  }

  /** Skips a character if it comes next. */
  #skip(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#at++;
    return true;
  }

  #expect(character: string): void {
    if (!this.#skip(character)) this.#failSyntax();
  }

  #failSyntax(message: string = this.#unexpected()): never {
    const place = `not valid JSON at byte ${this.#at}`;
    throw new JsonError("syntax", `${place}: ${message}`, this.#path.slice(0, PATH_STEPS_MAX));
  }

  #unexpected(): string {
    // A character takes up to four bytes.
    const [character] = this.#utf8(this.#at, this.#at + 4);
    if (character === undefined) return this.#cutOffBy ?? "unexpected end of input";
    return `unexpected ${JSON.stringify(character)}`;
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

function isContainer(value: JsonValue): value is Container {
  return typeof value === "object" && value !== null;
}

function endOf(container: Container): string {
  return Array.isArray(container) ? "]" : "}";
}

/** Sets a member. Defines `__proto__`, since an assignment would set the prototype. */
function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else {
    const settings = { writable: true, enumerable: true, configurable: true };
    Object.defineProperty(object, name, { value, ...settings });
  }
}
