/**
 * The expected result of strict JSON parsing, from the built-in parser and rules written
 * independently of the service's parser. It is slow but simple enough to trust: the built-in parser
 * checks the grammar, and then a rule checks each token.
 */
import canonicalizePackage from "canonicalize";

// The package is CommonJS, so Deno types its import as a namespace.
const canonicalText = canonicalizePackage as unknown as (value: unknown) => string;

export type Verdict =
  | { isAccepted: false; reason: string }
  | { isAccepted: true; value: unknown; depth: number; canonical: string };

/** @param depthMax deeper containers are replaced by 0. */
export function judge(bytes: Uint8Array, depthMax: number): Verdict {
  const text = decodeUtf8(bytes);
  if (text === null) return refused("not UTF-8");
  if (!isBuiltInJson(text)) return refused("not JSON");
  const reader = new TokenReader(text, depthMax);
  const value = reader.value(1);
  if (reader.brokenRule !== null) return refused(reader.brokenRule);
  return { isAccepted: true, value, depth: reader.depth, canonical: canonicalText(value) };
}

function refused(reason: string): Verdict {
  return { isAccepted: false, reason };
}

/** Keeps a byte order mark as an ordinary character, so the grammar rejects it. */
function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function isBuiltInJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** All tokens in a valid JSON document. */
const TOKENS = /[[\]{}:,]|"(?:[^"\\]|\\.)*"|[^[\]{}:," \t\r\n]+/gs;

class TokenReader {
  readonly #tokens: string[];
  readonly #depthMax: number;
  #at = 0;
  /** The maximum nesting depth. */
  depth = 0;
  brokenRule: string | null = null;

  constructor(text: string, depthMax: number) {
    this.#tokens = text.match(TOKENS)!;
    this.#depthMax = depthMax;
  }

  /** @param depth nesting depth of a container that begins here. */
  value(depth: number): unknown {
    const token = this.#next();
    if (token === "[" || token === "{") {
      this.depth = Math.max(this.depth, depth);
      const container = token === "[" ? this.#array(depth) : this.#object(depth);
      return depth > this.#depthMax ? 0 : container;
    }
    if (token.startsWith('"')) return this.#string(token);
    if (/^[-0-9]/.test(token)) return this.#number(token);
    return JSON.parse(token);
  }

  #array(depth: number): unknown[] {
    const items: unknown[] = [];
    while (!this.#ends("]")) items.push(this.value(depth + 1));
    return items;
  }

  #object(depth: number): object {
    const members = new Map<string, unknown>();
    while (!this.#ends("}")) {
      const name = this.#string(this.#next());
      if (members.has(name)) this.brokenRule ??= "a name appears twice";
      this.#next();
      members.set(name, this.value(depth + 1));
    }
    return Object.fromEntries(members);
  }

  #string(token: string): string {
    const text: string = JSON.parse(token);
    if (/\p{Surrogate}/u.test(text)) this.brokenRule ??= "an unpaired surrogate";
    return text;
  }

  #number(token: string): number {
    const value: number = JSON.parse(token);
    if (Math.abs(value) === Infinity) this.brokenRule ??= "a number that overflows";
    else if (/^-?\d+$/.test(token)) {
      const isSmall = BigInt(token.replace("-", "")) < 2n ** 53n;
      if (!isSmall && canonicalText(value) !== token) this.brokenRule ??= "an inexact integer";
    }
    return value;
  }

  #next(): string {
    return this.#tokens[this.#at++]!;
  }

  /** Skips the end of a container, or the comma before its next item. */
  #ends(close: string): boolean {
    if (this.#tokens[this.#at] === ",") this.#at++;
    if (this.#tokens[this.#at] !== close) return false;
    this.#at++;
    return true;
  }
}
