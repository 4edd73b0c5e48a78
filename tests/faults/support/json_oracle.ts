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
  let text: string;
  try {
    // A byte order mark is kept as an ordinary character, so the grammar rejects it.
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return refused("not UTF-8");
  }
  try {
    JSON.parse(text);
  } catch {
    return refused("not JSON");
  }
  let brokenRule: string | null = null;
  let depth = 0;
  const root: Container = { names: [], values: [] };
  // An explicit stack: documents may be nested deeper than the call stack allows.
  const open = [root];
  const tokens = text.match(TOKENS)!;
  for (const [place, token] of tokens.entries()) {
    const { names, values } = open.at(-1)!;
    if (token === "[" || token === "{") {
      depth = Math.max(depth, open.length);
      open.push({ names: [], values: [] });
    } else if (token === "]" || token === "}") {
      open.pop();
      // The built-in parser may confuse names with escapes, so objects are made from entries.
      const closed = token === "]"
        ? values
        : Object.fromEntries(names.map((name, at) => [name, values[at]]));
      open.at(-1)!.values.push(open.length > depthMax ? 0 : closed);
    } else if (token !== "," && token !== ":") {
      brokenRule ??= ruleBrokenBy(token);
      const value: unknown = JSON.parse(token);
      if (tokens[place + 1] !== ":") {
        values.push(value);
        continue;
      }
      if (names.includes(value as string)) brokenRule ??= "a name appears twice";
      names.push(value as string);
    }
  }
  if (brokenRule !== null) return refused(brokenRule);
  const [value] = root.values;
  return { isAccepted: true, value, depth, canonical: canonicalText(value) };
}

function refused(reason: string): Verdict {
  return { isAccepted: false, reason };
}

/** All tokens in a valid JSON document. */
const TOKENS = /[[\]{}:,]|"(?:[^"\\]|\\.)*"|[^[\]{}:," \t\r\n]+/gs;

/** An open container. An array has no names. */
interface Container {
  names: string[];
  values: unknown[];
}

/** @returns the rule that a name or a scalar breaks, or null. */
function ruleBrokenBy(token: string): string | null {
  if (token.startsWith('"')) {
    return /\p{Surrogate}/u.test(JSON.parse(token)) ? "an unpaired surrogate" : null;
  }
  if (!/^[-0-9]/.test(token)) return null;
  const value: number = JSON.parse(token);
  if (Math.abs(value) === Infinity) return "a number that overflows";
  const isLarge = /^-?\d+$/.test(token) && BigInt(token.replace("-", "")) >= 2n ** 53n;
  return isLarge && canonicalText(value) !== token ? "an inexact integer" : null;
}
