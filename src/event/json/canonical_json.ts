/**
 * Canonical JSON (RFC 8785): members sorted by UTF-16 code units, numbers and strings formatted as
 * in ECMAScript, no whitespace. Equal values have equal encodings. Also runs in browsers.
 */
import { quoteString } from "./quote_string.ts";

/** Default nesting limit of `canonicalize()`; bounds its recursion. */
export const CANONICAL_DEPTH_MAX: number = 1024;

/** Thrown for a value that is nested too deeply or contains itself. */
export class DepthError extends TypeError {
  /** Name of this error class. */
  override name = "DepthError";
}

/**
 * Returns the canonical form of a JSON value: null, booleans, finite numbers, well-formed strings,
 * arrays and plain objects of these. Includes every own enumerable property, even `__proto__`.
 *
 * @param depthMax maximum nesting of containers.
 * @throws {TypeError} for any other value.
 * @throws {DepthError} (a TypeError) when the value is nested too deeply or contains itself.
 */
export function canonicalize(value: unknown, depthMax: number = CANONICAL_DEPTH_MAX): string {
  const text = new FlatText();
  put(value, depthMax, text);
  return text.end();
}

function put(value: unknown, depthMax: number, text: FlatText): void {
  switch (typeof value) {
    case "string":
      return text.put(quoteString(value));
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical JSON form`);
      return text.put(String(value));
    case "boolean":
      return text.put(value ? "true" : "false");
    case "object":
      return value === null ? text.put("null") : putContainer(value, depthMax, text);
    default:
      throw new TypeError(`a value of type ${typeof value} has no canonical JSON form`);
  }
}

function putContainer(value: object, depthMax: number, text: FlatText): void {
  if (depthMax <= 0) throw new DepthError("the value is nested too deeply or contains itself");
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      text.put(index === 0 ? "[" : ",");
      put(value[index], depthMax - 1, text);
    }
    return text.put(value.length === 0 ? "[]" : "]");
  }
  if (!isPlainObject(value)) {
    throw new TypeError("only plain objects have a canonical JSON form");
  }
  // RFC 8785 section 3.2.3 sorts by UTF-16 code units, as ECMAScript compares strings.
  const names = Object.keys(value).sort();
  for (let index = 0; index < names.length; index++) {
    const name = names[index]!;
    text.put((index === 0 ? "{" : ",") + quoteString(name) + ":");
    put((value as Record<string, unknown>)[name], depthMax - 1, text);
  }
  text.put(names.length === 0 ? "{}" : "}");
}

/**
 * A string builder that flattens every PIECE_CHARS. V8 represents concatenations as a rope with 32
 * bytes per append. Without flattening, a payload of millions of small values took a gigabyte.
 */
class FlatText {
  #text = "";
  #piece = "";

  put(text: string): void {
    this.#piece += text;
    if (this.#piece.length >= PIECE_CHARS) this.end();
  }

  end(): string {
    // V8 flattens a rope to read a character. Canonical JSON contains no NUL, but the compiler
    // cannot infer that, so it does not optimize the read away.
    if (this.#piece.charCodeAt(this.#piece.length - 1) !== 0) this.#text += this.#piece;
    this.#piece = "";
    return this.#text;
  }
}

const PIECE_CHARS = 4096;

/** Whether a value is a plain object, possibly from another realm, such as an iframe. */
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
