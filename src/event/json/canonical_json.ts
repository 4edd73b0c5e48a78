/**
 * Canonical JSON (RFC 8785): members sorted by UTF-16 code units, numbers and strings formatted as
 * in ECMAScript, no whitespace. Equal values have equal encodings. Also runs in browsers.
 */
/** Maximum nesting of containers in `canonicalize()`; bounds its recursion. */
const DEPTH_MAX = 1024;

/**
 * Returns the canonical form of a JSON value: null, booleans, finite numbers, well-formed strings,
 * arrays and plain objects of these. Includes every own enumerable property, even `__proto__`.
 *
 * @throws {TypeError} for any other value, and one nested more than 1,024 levels deep.
 */
export function canonicalize(value: unknown): string {
  return textOf(value, DEPTH_MAX);
}

function textOf(value: unknown, depthMax: number): string {
  if (typeof value !== "object" || value === null) return scalarText(value);
  if (depthMax <= 0) throw new TypeError("the value is nested too deeply or contains itself");
  let text = "";
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      text += (index > 0 ? "," : "") + textOf(item, depthMax - 1);
    }
    return `[${text}]`;
  }
  if (!isPlainObject(value)) {
    throw new TypeError("only plain objects have a canonical JSON form");
  }
  // RFC 8785 section 3.2.3 sorts by UTF-16 code units, as ECMAScript compares strings.
  for (const [index, name] of Object.keys(value).sort().entries()) {
    const member = textOf((value as Record<string, unknown>)[name], depthMax - 1);
    text += `${index > 0 ? "," : ""}${quoteString(name)}:${member}`;
  }
  return `{${text}}`;
}

function scalarText(value: unknown): string {
  if (typeof value === "string") return quoteString(value);
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new TypeError(`${value} has no canonical JSON form`);
  }
  if (value === null || typeof value === "number" || typeof value === "boolean") {
    return String(value);
  }
  throw new TypeError(`a value of type ${typeof value} has no canonical JSON form`);
}

/** Formats a string. @throws {TypeError} if it has an unpaired surrogate. */
function quoteString(text: string): string {
  if (text.isWellFormed()) return JSON.stringify(text);
  throw new TypeError("a string with an unpaired surrogate has no canonical JSON form");
}

/** Whether a value is a plain object, possibly from another realm, such as an iframe. */
function isPlainObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
