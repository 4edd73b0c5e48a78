/** Random JSON values, and random spellings of JSON with mutations that may break them. */
import type { JsonValue } from "../../../src/event/json/strict_json.ts";
import type { SeededRandom } from "../../../tools/support/random.ts";

/** A value of at most the given depth. */
export function randomValue(random: SeededRandom, depthMax: number): JsonValue {
  const kind = random.below(depthMax > 0 ? 8 : 5);
  if (kind === 0) return random.pick([null, true, false]);
  if (kind === 1) return random.finiteNumber();
  if (kind === 2) return random.below(2000) - 1000;
  if (kind < 5) return random.text(12);
  if (kind === 5) {
    return Array.from({ length: random.below(5) }, () => randomValue(random, depthMax - 1));
  }
  const members: [string, JsonValue][] = [];
  for (let count = random.below(random.chance(0.05) ? 40 : 6); count > 0; count--) {
    members.push([randomName(random), randomValue(random, depthMax - 1)]);
  }
  // Unlike an assignment, this makes `__proto__` a member.
  return Object.fromEntries(members);
}

function randomName(random: SeededRandom): string {
  if (random.chance(0.2)) return String(random.below(50));
  return random.chance(0.1) ? random.pick(["__proto__", "constructor", ""]) : random.text(6);
}

const WHITESPACE = ["", "", "", " ", "\n", "\r\t "];
const NAMES = ["a", "b", "\\u0061", "\\u0062", "é", "\\u00e9", "😀", "\\ud83d\\ude00", "10", "9"];
const SCALARS = [
  ...["null", "true", "false", "0", "-0", "-1", "12.5", "1e5", "1E-7", "1e308", "1e309", "-1e400"],
  ...["9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993"],
  ...["100000000000000000000", "1000000000000000000000", "18446744073709551617.0"],
  ...['""', '"x"', '"\\n\\"\\\\"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\udc00"', '"\\u0000"'],
];

/** A text of the JSON grammar, in which names may repeat and numbers and escapes break rules. */
export function randomJsonText(random: SeededRandom, depthMax: number): string {
  const space = () => random.pick(WHITESPACE);
  const kind = random.below(depthMax > 0 ? 3 : 1);
  if (kind === 0) return space() + random.pick(SCALARS) + space();
  const items: string[] = [];
  for (let count = random.below(4); count > 0; count--) {
    const item = randomJsonText(random, depthMax - 1);
    items.push(kind === 1 ? item : `${space()}"${random.pick(NAMES)}"${space()}:${item}`);
  }
  const inside = items.length === 0 ? space() : items.join(",");
  return space() + (kind === 1 ? `[${inside}]` : `{${inside}}`) + space();
}

const FRAGMENTS = [
  '"',
  "\\",
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "e",
  ".",
  "-",
  "0",
  "1",
  "\\u",
  "\\ud8",
];
const HOSTILE_BYTES = [0x00, 0x1f, 0x7f, 0x80, 0xc0, 0xc3, 0xe0, 0xed, 0xf0, 0xf4, 0xff];

/** Changes a text in one to three places: drops, repeats, inserts or overwrites bytes. */
export function mutate(random: SeededRandom, text: string): Uint8Array {
  let bytes = new TextEncoder().encode(text);
  for (let count = 1 + random.below(3); count > 0; count--) {
    const at = random.below(bytes.length + 1);
    const end = Math.min(bytes.length, at + random.below(4));
    const inserted = random.pick([
      new Uint8Array(),
      bytes.slice(at, end),
      new TextEncoder().encode(random.pick(FRAGMENTS)),
      Uint8Array.of(random.chance(0.5) ? random.pick(HOSTILE_BYTES) : random.below(256)),
    ]);
    const rest = bytes.subarray(random.chance(0.5) ? end : at);
    bytes = Uint8Array.from([...bytes.subarray(0, at), ...inserted, ...rest]);
  }
  return bytes;
}
