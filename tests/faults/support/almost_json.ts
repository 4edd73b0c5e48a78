/**
 * Documents that are valid JSON, are nearly valid, or violate a rule of strict JSON. A grammar of
 * hostile parts generates them, and random changes to tokens or bytes mutate them.
 */
import { Buffer } from "node:buffer";
import type { SeededRandom } from "../../../tools/support/random.ts";
import { hostileNumber, hostileString } from "./almost_json_scalars.ts";

/** The bytes of one document. */
export function almostJson(random: SeededRandom): Uint8Array {
  const text = random.chance(0.04) ? deepText(random) : textOf(random, 1 + random.below(5));
  const changed = random.chance(0.35) ? changeTokens(random, text) : text;
  const bytes = Buffer.from(changed);
  if (random.chance(0.02)) return Buffer.concat([random.pick(PREFIXES), bytes]);
  return random.chance(0.25) ? changeBytes(random, bytes) : bytes;
}

const BOM = Buffer.from("\ufeff");
const PREFIXES = [BOM, Buffer.concat([BOM, BOM]), Buffer.from([0xff, 0xfe]), Buffer.from([0x00])];

/** JSON allows only spaces, tabs and line ends as whitespace. Other languages allow more. */
const SPACES = ["", "", "", "", "", "", " ", "\n", "\r\n", "\t", "   "];
const OTHER_SPACES = ["\u00a0", "\u2028", "\f", "\v", "\u0085", "\ufeff", "/**/", "//\n", "\0"];

function space(random: SeededRandom): string {
  return random.chance(0.002) ? random.pick(OTHER_SPACES) : random.pick(SPACES);
}

/** A document with containers nested up to a depth. */
export function textOf(random: SeededRandom, depth: number): string {
  const kind = random.below(depth > 0 ? 10 : 4);
  const inside = kind < 4
    ? scalarText(random)
    : kind < 7
    ? `[${listOf(random, () => textOf(random, depth - 1))}]`
    : objectText(random, depth);
  return space(random) + inside + space(random);
}

const WORDS = ["null", "true", "false", "true", "false", "null"];
const NEAR_WORDS = ["nul", "True", "NaN", "Infinity", "-Infinity", "undefined", "'a'", "nulll", ""];

function scalarText(random: SeededRandom): string {
  if (random.chance(0.01)) return random.pick(NEAR_WORDS);
  const kind = random.below(5);
  if (kind === 0) return random.pick(WORDS);
  return kind < 3 ? hostileNumber(random) : hostileString(random);
}

function listOf(random: SeededRandom, item: () => string): string {
  return Array.from({ length: random.below(4) }, item).join(",");
}

/**
 * An object whose member names are drawn from a few, each with many encodings. Duplicates are
 * frequent, and so are names that V8 could confuse.
 */
function objectText(random: SeededRandom, depth: number): string {
  if (random.chance(0.02)) return `[${largeObject(random)},${largeObject(random)}]`;
  const members = Array.from({ length: random.below(5) }, () => {
    const name = space(random) + memberName(random) + space(random);
    return `${name}:${textOf(random, depth - 1)}`;
  });
  return `{${members.length === 0 ? space(random) : members.join(",")}}`;
}

/** An object with too many members for a parser to check for duplicates pairwise. */
function largeObject(random: SeededRandom): string {
  const members = Array.from({ length: 14 + random.below(30) }, (_, at) => {
    return `${random.chance(0.02) ? memberName(random) : `"m${at}"`}:0`;
  });
  return `{${members.join(",")}}`;
}

const NAMES = [
  ...["a", "b", "\\", "\n", '"', "\\\\", "\\n", "\\u", "\u0004", "/", "", " ", "0", "1", "10"],
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "__defineGetter__", "length"],
  ...["\u00e9", "e\u0301", "\u{1f600}", "\ufb33", "\u20ac", "\u0080", "\uffff", "a\0", "payload"],
];

function memberName(random: SeededRandom): string {
  if (random.chance(0.03)) return hostileString(random);
  return spelled(random, random.pick(NAMES));
}

/** A random encoding of a string as JSON. */
function spelled(random: SeededRandom, text: string): string {
  if (random.chance(0.6)) return JSON.stringify(text);
  const units = Array.from(text, (char) => {
    if (random.chance(0.5)) return JSON.stringify(char).slice(1, -1);
    return char.split("").map((unit) => unicodeEscape(random, unit)).join("");
  });
  return `"${units.join("")}"`;
}

function unicodeEscape(random: SeededRandom, unit: string): string {
  const digits = unit.charCodeAt(0).toString(16).padStart(4, "0");
  return "\\u" + (random.chance(0.5) ? digits : digits.toUpperCase());
}

/** Depths around the limits, and one that overflows any recursive parser. */
const DEPTHS = [2, 20, 126, 127, 128, 129, 130, 254, 255, 256, 257, 258, 300, 1000];

/** Containers nested to a depth near the limit. */
export function deepText(random: SeededRandom): string {
  const depth = random.chance(0.002) ? 20_000 : random.pick(DEPTHS);
  let open = "";
  let close = "";
  for (let level = 0; level < depth; level++) {
    const isArray = random.chance(0.7);
    const before = random.chance(0.05) ? `${random.below(100)},` : "";
    open += isArray ? `[${before}` : `{${memberName(random)}:`;
    close = (isArray ? "]" : "}") + close;
  }
  if (random.chance(0.1)) close = close.slice(1);
  return open + textOf(random, 1) + close;
}

const TOKENS = /[[\]{}:,]|"(?:[^"\\]|\\.)*"|[^[\]{}:,"]+/gs;
const INSERTED = ["[", "]", "{", "}", ":", ",", '"', "null", "0", '"a"', '"a":1', ",,", "[]", "{}"];

/**
 * Drops, duplicates, swaps, replaces or adds one or two tokens.
 * @param other returns a replacement token.
 * @param pattern matches every token; by default, those of JSON.
 */
export function changeTokens(
  random: SeededRandom,
  text: string,
  other: () => string = () => random.pick(INSERTED),
  pattern: RegExp = TOKENS,
): string {
  const tokens = text.match(pattern) ?? [];
  for (let count = 1 + random.below(2); count > 0 && tokens.length > 0; count--) {
    const at = random.below(tokens.length);
    const second = random.below(tokens.length);
    const kind = random.below(5);
    if (kind === 0) tokens.splice(at, 1);
    else if (kind === 1) tokens.splice(second, 0, tokens[at]!);
    else if (kind === 2) [tokens[at], tokens[second]] = [tokens[second]!, tokens[at]!];
    else if (kind === 3) tokens[at] = other();
    else tokens.splice(at, 0, other());
  }
  return tokens.join("");
}

/** Malformed and rare UTF-8 sequences (RFC 3629), and bytes with a special meaning in JSON. */
const SEQUENCES = [
  ...[[0x80], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x80, 0x80], [0xf0, 0x80, 0x80, 0x80]],
  ...[[0xed, 0xa0, 0x80], [0xed, 0xbf, 0xbf], [0xed, 0x9f, 0xbf], [0xf4, 0x90, 0x80, 0x80]],
  ...[[0xf4, 0x8f, 0xbf, 0xbf], [0xf5, 0x80, 0x80, 0x80], [0xc3], [0xe2, 0x82], [0xf0, 0x9f]],
  ...[[0xff], [0xfe], [0xef, 0xbb, 0xbf], [0xef, 0xbf, 0xbe], [0x00], [0x1f], [0x7f], [0x5c]],
  ...[[0x22], [0x5c, 0x75], [0x0a], [0x2c], [0x3a], [0x2d], [0x2e], [0x65], [0x30], [0xc2, 0xa0]],
];

/** Drops, duplicates, overwrites, flips or adds bytes in one to three places. */
export function changeBytes(
  random: SeededRandom,
  original: Uint8Array,
  sequences: readonly (Uint8Array | readonly number[])[] = SEQUENCES,
): Buffer {
  let bytes = Buffer.from(original);
  for (let count = 1 + random.below(3); count > 0; count--) {
    const at = random.below(bytes.length + 1);
    const end = Math.min(bytes.length, at + random.below(4));
    const kind = random.below(5);
    if (kind === 0 && at < bytes.length) {
      bytes[at] = bytes[at]! ^ (1 << random.below(8));
      continue;
    }
    const added = kind === 1
      ? bytes.subarray(at, end)
      : kind === 2
      ? Buffer.of(random.below(256))
      : Buffer.from(kind === 3 ? [] : random.pick(sequences));
    const rest = bytes.subarray(random.chance(0.5) ? end : at);
    bytes = Buffer.concat([bytes.subarray(0, at), added, rest]);
  }
  return bytes;
}
