/**
 * Builds the value of a JSON text by hand. Only for texts whose member names hold escapes: V8's
 * `JSON.parse` takes a name for one that it has seen before when the escapes of the one begin like
 * the characters of the other. After `{"\\":1}` it can read `{"\n":1}` as `{"\\":1}` (seen in V8
 * 13.6 and 15.0), which would change what a client submitted without a word.
 */
import type { JsonObject, JsonValue } from "./json_value.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COLON = 0x3a;
const COMMA = 0x2c;

/**
 * @param text valid JSON, nested no deeper than the stack bears. Of a name that an object has twice
 *   the last value counts.
 */
export function buildJson(text: string): JsonValue {
  return new Builder(text).value();
}

class Builder {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): JsonValue {
    this.#skipWhitespace();
    switch (this.#text.charCodeAt(this.#at)) {
      case OPEN_OBJECT:
        return this.#object();
      case OPEN_ARRAY:
        return this.#array();
      case QUOTE:
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #object(): JsonObject {
    const object: JsonObject = {};
    this.#at += 1;
    while (!this.#skipTo(CLOSE_OBJECT)) {
      const name = this.#string();
      this.#skipTo(COLON);
      setMember(object, name, this.value());
    }
    return object;
  }

  #array(): JsonValue[] {
    const items: JsonValue[] = [];
    this.#at += 1;
    while (!this.#skipTo(CLOSE_ARRAY)) items.push(this.value());
    return items;
  }

  #string(): string {
    const start = this.#at;
    let hasEscape = false;
    let end = start + 1;
    for (;; end++) {
      const unit = this.#text.charCodeAt(end);
      if (unit === QUOTE) break;
      if (unit !== BACKSLASH) continue;
      hasEscape = true;
      end += 1;
    }
    this.#at = end + 1;
    // A string on its own has no name that it could be taken for.
    return hasEscape
      ? JSON.parse(this.#text.slice(start, end + 1))
      : this.#text.slice(start + 1, end);
  }

  /** A number, `true`, `false` or `null`. */
  #scalar(): JsonValue {
    const start = this.#at;
    while (/[-+.\w]/.test(this.#text.charAt(this.#at))) this.#at += 1;
    return JSON.parse(this.#text.slice(start, this.#at));
  }

  /** Passes over whitespace, commas, and `unit` if it comes next. @returns whether it did. */
  #skipTo(unit: number): boolean {
    this.#skipWhitespace();
    if (this.#text.charCodeAt(this.#at) === COMMA) this.#at += 1;
    this.#skipWhitespace();
    if (this.#text.charCodeAt(this.#at) !== unit) return false;
    this.#at += 1;
    return true;
  }

  #skipWhitespace(): void {
    while (this.#text.charCodeAt(this.#at) <= 0x20) this.#at += 1;
  }
}

/** Also for `__proto__`, to which an assignment would mean something else. */
function setMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== "__proto__") object[name] = value;
  else {Object.defineProperty(object, name, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });}
}
