/** Random JSON values, and mutations that may invalidate a document. */
import type { JsonValue } from "../../../src/event/json/strict_json.ts";
import type { SeededRandom } from "../../../tools/support/random.ts";

/** A value with at most the given nesting depth. */
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
  // Unlike an assignment, `fromEntries()` makes `__proto__` an own property.
  return Object.fromEntries(members);
}

function randomName(random: SeededRandom): string {
  if (random.chance(0.2)) return String(random.below(50));
  return random.chance(0.1) ? random.pick(["__proto__", "constructor", ""]) : random.text(6);
}

const FRAGMENTS = [...'"\\{}[],:e.-01', "\\u", "\\ud8"];
const HOSTILE_BYTES = [0x00, 0x1f, 0x7f, 0x80, 0xc0, 0xc3, 0xe0, 0xed, 0xf0, 0xf4, 0xff];

/** Mutates a document in one to three places: removes, repeats, inserts or overwrites bytes. */
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
