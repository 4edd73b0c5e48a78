import assert from "node:assert/strict";
import { test } from "node:test";
import {
  batchKeyHash,
  KEY_FILTER_BLOCK_BYTES,
  keyBlockStart,
  keyFilterBytes,
  KeyHashes,
  mayHoldKey,
  sourceKeyHash,
  streamKeyHash,
} from "../../../src/log/segment/key_filter.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

function filterOf(hashes: ReturnType<typeof sourceKeyHash>[]): Uint8Array {
  const keys = new KeyHashes();
  for (const hash of hashes) keys.add(hash);
  return keys.filter();
}

function passes(filter: Uint8Array, hash: ReturnType<typeof sourceKeyHash>): boolean {
  return mayHoldKey(filter, keyBlockStart(filter.length, hash), hash);
}

test(`KeyHashes.filter() holds every key, in any number of blocks (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (const count of [0, 1, 2, 10, 11, 1000, 1 + random.below(20_000)]) {
    const hashes = Array.from({ length: count }, (_, n) => batchKeyHash(random.text(9), `${n}`));
    const filter = filterOf(hashes);
    assert.equal(filter.length, keyFilterBytes(count));
    assert.equal(filter.length % KEY_FILTER_BLOCK_BYTES, 0);
    assert.ok(hashes.every((hash) => passes(filter, hash)), `${count} keys`);
  }
});

test("KeyHashes.filter() lets few other keys pass", () => {
  const keys = 50_000;
  const hashes = Array.from({ length: keys }, (_, n) => batchKeyHash("shop", `batch-${n}`));
  const filter = filterOf(hashes);
  assert.equal(filter.length, 3 * keys + (32 - (3 * keys) % 32) % 32);
  const others = 200_000;
  let passed = 0;
  for (let n = 0; n < others; n++) if (passes(filter, batchKeyHash("shop", `other-${n}`))) passed++;
  assert.ok(passed < others / 3000, `${passed} of ${others}`);
});

test("an empty filter holds nothing", () => {
  const filter = filterOf([]);
  assert.equal(filter.length, KEY_FILTER_BLOCK_BYTES);
  assert.ok(!passes(filter, sourceKeyHash("a")));
});

test("a source, a stream and a batch of the same names are different keys", () => {
  const hashes = [
    sourceKeyHash("a"),
    sourceKeyHash("a.b"),
    streamKeyHash("a", "b"),
    streamKeyHash("a.b", "b"),
    batchKeyHash("a", "b"),
    batchKeyHash("a", "a b"),
    batchKeyHash("a", ""),
  ];
  assert.equal(new Set(hashes.map(({ high, low }) => `${high} ${low}`)).size, hashes.length);
});
