/**
 * Canonical JSON (RFC 8785): members sorted by UTF-16 code units, numbers and strings formatted as
 * ECMAScript formats them, no whitespace. Equal values have equal texts. Also runs in browsers.
 */
import { quoteString } from "./quote_string.ts";

/** Longest cached name, in UTF-16 code units. */
const NAME_CACHE_CHARS_MAX = 64;

/** Quoted member names in the cache; a full cache is cleared. */
export const NAME_CACHE_ENTRIES_MAX: number = 1024;

/** Default nesting limit of `canonicalize()`; bounds its recursion. */
export const CANONICAL_DEPTH_MAX: number = 1024;

/** Thrown for a value that is nested too deep or contains itself. */
export class DepthError extends TypeError {
  /** Name of this error class. */
  override name = "DepthError";
}

/**
 * Returns the canonical text of a JSON value: null, booleans, finite numbers, well-formed strings,
 * arrays and plain objects of these. Includes every own enumerable member, even `__proto__`.
 *
 * @param depthMax maximum nesting of containers.
 * @throws {TypeError} for values without a canonical form: undefined, non-finite numbers, unpaired
 *   surrogates, bigints, symbols, functions and other objects.
 * @throws {DepthError} (a TypeError) when the value is too deep or contains itself.
 */
export function canonicalize(value: unknown, depthMax: number = CANONICAL_DEPTH_MAX): string {
  switch (typeof value) {
    case "string":
      return quoteString(value);
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${value} has no canonical JSON form`);
      return String(value);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      return value === null ? "null" : canonicalContainer(value, depthMax);
    default:
      throw new TypeError(`a value of type ${typeof value} has no canonical JSON form`);
  }
}

function canonicalContainer(value: object, depthMax: number): string {
  if (depthMax <= 0) throw new DepthError("the value is nested too deep or contains itself");
  if (Array.isArray(value)) return canonicalArray(value, depthMax - 1);
  if (!isPlainObject(value)) {
    throw new TypeError("an object that is not plain has no canonical form");
  }
  return canonicalObject(value as Record<string, unknown>, depthMax - 1);
}

function canonicalArray(items: readonly unknown[], depthMax: number): string {
  let text = "";
  let piece = "[";
  for (let index = 0; index < items.length; index++) {
    if (index > 0) piece += ",";
    piece += canonicalize(items[index], depthMax);
    if (piece.length < PIECE_CHARS) continue;
    text += inOnePiece(piece);
    piece = "";
  }
  return text + piece + "]";
}

function canonicalObject(members: Record<string, unknown>, depthMax: number): string {
  const names = Object.keys(members);
  sortNames(names);
  let text = "";
  let piece = "{";
  for (let index = 0; index < names.length; index++) {
    if (index > 0) piece += ",";
    const name = names[index]!;
    piece += quoteName(name) + canonicalize(members[name], depthMax);
    if (piece.length < PIECE_CHARS) continue;
    text += inOnePiece(piece);
    piece = "";
  }
  return text + piece + "}";
}

/**
 * V8 represents concatenations as a rope, 32 bytes per append: a payload of millions of small
 * values took a gigabyte. Ropes of this length are flattened.
 */
const PIECE_CHARS = 4096;

/**
 * Flattens a rope: V8 does so to read a character. Canonical text holds no NUL, but the compiler
 * can't know that, so it can't optimize the read away.
 */
function inOnePiece(text: string): string {
  return text.charCodeAt(text.length - 1) === 0 ? "" : text;
}

/** Sorts by UTF-16 code units (RFC 8785 section 3.2.3), the order of ECMAScript strings. */
function sortNames(names: string[]): void {
  if (names.length > INSERTION_SORT_MAX) {
    names.sort();
    return;
  }
  for (let index = 1; index < names.length; index++) {
    const name = names[index]!;
    let at = index;
    for (; at > 0 && names[at - 1]! > name; at--) names[at] = names[at - 1]!;
    names[at] = name;
  }
}

/** For up to this many names an insertion sort beats `sort()`. */
const INSERTION_SORT_MAX = 16;

/** Cached because events of one kind share their member names. */
const quotedNames = new Map<string, string>();

/** Formats a member name with its colon. */
function quoteName(name: string): string {
  const known = quotedNames.get(name);
  if (known !== undefined) return known;
  const quoted = quoteString(name) + ":";
  if (name.length > NAME_CACHE_CHARS_MAX) return quoted;
  if (quotedNames.size >= NAME_CACHE_ENTRIES_MAX) quotedNames.clear();
  quotedNames.set(name, quoted);
  return quoted;
}

/** Also accepts plain objects of another realm, for example of an iframe. */
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
