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
  const value = reader.value();
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

interface Container {
  readonly members: Map<string, unknown> | null;
  readonly items: unknown[];
  /** The member whose value comes next. */
  name: string | null;
}

/** Uses an explicit stack: documents may be nested deeper than the call stack allows. */
class TokenReader {
  readonly #tokens: string[];
  readonly #depthMax: number;
  /** The maximum nesting depth. */
  depth = 0;
  brokenRule: string | null = null;

  constructor(text: string, depthMax: number) {
    this.#tokens = text.match(TOKENS)!;
    this.#depthMax = depthMax;
  }

  value(): unknown {
    const open: Container[] = [];
    for (const token of this.#tokens) {
      if (token === "," || token === ":") continue;
      if (token === "[" || token === "{") {
        open.push({ members: token === "{" ? new Map() : null, items: [], name: null });
        this.depth = Math.max(this.depth, open.length);
        continue;
      }
      const container = open.at(-1);
      if (token !== "}" && container?.members && container.name === null) {
        container.name = this.#string(token);
        if (container.members.has(container.name)) this.brokenRule ??= "a name appears twice";
        continue;
      }
      const value = token === "]" || token === "}" ? this.#close(open) : this.#scalar(token);
      const parent = open.at(-1);
      if (parent === undefined) return value;
      if (parent.members === null) parent.items.push(value);
      else {
        parent.members.set(parent.name!, value);
        parent.name = null;
      }
    }
    throw new Error("no value");
  }

  #close(open: Container[]): unknown {
    const depth = open.length;
    const { members, items } = open.pop()!;
    if (depth > this.#depthMax) return 0;
    return members === null ? items : Object.fromEntries(members);
  }

  #scalar(token: string): unknown {
    if (token.startsWith('"')) return this.#string(token);
    return /^[-0-9]/.test(token) ? this.#number(token) : JSON.parse(token);
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
}
