import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { FILTER_BLOCK_BYTES, KeyFilter } from "../../../src/log/line/key_filter.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

const KEYS = 20_000;

test(`a filter has all its keys, and few others pass, at any size (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const word = () => random.below(2 ** 32);
  // Bits for each key, and the share of absent keys that may pass.
  const cases = [[1, 0.68], [2, 0.44], [3, 0.28], [4, 0.2], [6, 0.08], [8, 0.045], [12, 0.01]];
  for (const [bits, passing] of cases) {
    const blocks = Math.ceil(KEYS * bits! / (8 * FILTER_BLOCK_BYTES));
    const bytes = Buffer.alloc(blocks * FILTER_BLOCK_BYTES);
    const filter = new KeyFilter(bytes, KEYS);
    const keys = Array.from({ length: KEYS }, () => [word(), word()] as const);
    for (const [high, low] of keys) filter.add(high, low);
    const read = new KeyFilter(bytes, KEYS);
    assert.ok(keys.every(([high, low]) => read.mayHold(high, low)), `${bits} bits`);
    let passed = 0;
    for (let key = 0; key < KEYS; key++) passed += read.mayHold(word(), word()) ? 1 : 0;
    assert.ok(passed < passing! * KEYS, `${bits} bits: ${passed} of ${KEYS} pass`);
  }
});
