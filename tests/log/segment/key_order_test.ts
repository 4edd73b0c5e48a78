import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { sortKeys } from "../../../src/log/segment/key_order.ts";
import { KeyTable } from "../../../src/log/segment/key_table.ts";
import { randomInteger, seededRandom, testSeed } from "../../../tools/support/random.ts";

/** The texts, which must be distinct, in the order that `sortKeys()` finds. */
function sorted(texts: string[]): string[] {
  const keys = new KeyTable();
  for (const text of texts) keys.add(Buffer.from(text, "latin1"), text.length);
  assert.equal(keys.size, texts.length);
  const numbers = Uint32Array.from(texts, (_, number) => number);
  sortKeys(keys, numbers);
  return [...numbers].map((number) => keys.textOf(number));
}

const CASES: Record<string, string[]> = {
  "nothing": [],
  "one key": ["a"],
  "keys that begin alike, the longest first": Array.from({ length: 300 }, (_, i) => "x".repeat(i))
    .reverse(),
  "one byte each": Array.from({ length: 256 }, (_, i) => String.fromCharCode(i * 7 % 256)),
  "many in order": Array.from({ length: 5000 }, (_, i) => String(10_000 + i)),
  "many in reverse order": Array.from({ length: 5000 }, (_, i) => String(20_000 - i)),
};

for (const [name, texts] of Object.entries(CASES)) {
  test(`sortKeys() sorts ${name}`, () => {
    assert.deepEqual(sorted(texts), texts.toSorted());
  });
}

const seed = testSeed();

test(`sortKeys() sorts as texts are sorted (SEED=${seed})`, () => {
  const random = seededRandom(seed);
  for (let run = 0; run < 30; run++) {
    const letters = randomInteger(random, 1, 5);
    const text = () =>
      Array.from(
        { length: randomInteger(random, 0, 12) },
        () => String.fromCharCode(0x61 + randomInteger(random, 0, letters)),
      ).join("");
    const texts = [...new Set(Array.from({ length: randomInteger(random, 0, 1000) }, text))];
    assert.deepEqual(sorted(texts), texts.toSorted());
  }
});
