/**
 * Canonical JSON of RFC 8785. Equal values have one spelling: members sorted by UTF-16 code units,
 * numbers and strings as ECMAScript spells them, no whitespace. Uses nothing but the language, so
 * that it runs in browsers too.
 */
import { quoteString } from "./quote_string.ts";

/** Longest name that is kept, in UTF-16 code units. */
const NAME_CACHE_CHARS_MAX = 64;

/** Member names that canonicalization keeps in quoted form; all are dropped when there are more. */
export const NAME_CACHE_ENTRIES_MAX: number = 1024;

/** Containers of a value that `canonicalize()` takes; bounds its recursion. */
export const CANONICAL_DEPTH_MAX: number = 1024;

/** A value that has more containers on one path than allowed, or contains itself. */
export class DepthError extends TypeError {
  /** Tells it from other errors in logs. */
  override name = "DepthError";
}

/**
 * The canonical text of a JSON value: null, booleans, finite numbers, well-formed strings, arrays
 * and plain objects of these. Every own enumerable member counts, `__proto__` too.
 *
 * @param depthMax containers allowed on one path.
 * @throws {TypeError} for what has no canonical form: undefined, non-finite numbers, unpaired
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
 * V8 keeps a text that is added to as a tree, 32 bytes for each addition: a payload of millions of
 * small values took a gigabyte until its text was whole. So what has grown to this is made whole.
 */
const PIECE_CHARS = 4096;

/**
 * The same text, for good in one piece: so V8 makes it to read a character. No canonical text has a
 * NUL, but the compiler cannot know, and leaves the reading in.
 */
function inOnePiece(text: string): string {
  return text.charCodeAt(text.length - 1) === 0 ? "" : text;
}

/** Sorts by UTF-16 code units (RFC 8785 section 3.2.3), which is how strings compare and sort. */
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

/** Up to so many names an insertion sort beats the call of `sort()`. */
const INSERTION_SORT_MAX = 16;

/** Events of one kind share their member names, so the quoted ones are kept. */
const quotedNames = new Map<string, string>();

/** A member name as it is spelled, with its colon. */
function quoteName(name: string): string {
  const known = quotedNames.get(name);
  if (known !== undefined) return known;
  const quoted = quoteString(name) + ":";
  if (name.length > NAME_CACHE_CHARS_MAX) return quoted;
  if (quotedNames.size >= NAME_CACHE_ENTRIES_MAX) quotedNames.clear();
  quotedNames.set(name, quoted);
  return quoted;
}

/** Also true for objects of another realm, such as a browser's frame. */
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
