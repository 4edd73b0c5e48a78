import assert from "node:assert/strict";
import { test } from "node:test";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { BatchIndex } from "../../src/service/batch_index.ts";
import { SEED, SeededRandom } from "../../tools/support/random.ts";

function idAt(place: number): string {
  return `019b7c4e-2d37-7a01-8f00-${place.toString(16).padStart(12, "0")}`;
}

function entryOf(place: number, source: string, batchId: string): BatchEntry {
  return {
    batch_digest: place.toString(16).padStart(64, "0f"),
    batch_id: batchId,
    events: place + 1,
    first_event_id: idAt(place),
    last_event_id: idAt(2 * place),
    source,
  };
}

test("BatchIndex keeps identities apart by source and by batch id", () => {
  const index = new BatchIndex();
  const entries = [["a", "b"], ["a", "c"], ["a.b", "c"], ["b", "b"], ["a", "c d"], ["a", "C"]]
    .map(([source, batchId], place) => entryOf(place, source!, batchId!));
  for (const entry of entries) {
    assert.equal(index.get(entry.source, entry.batch_id), undefined);
    index.add(entry);
  }
  for (const entry of entries) assert.deepEqual(index.get(entry.source, entry.batch_id), entry);
  assert.equal(index.get("a", "c "), undefined);
  assert.equal(index.get("c", "a"), undefined);
  assert.equal(index.get("a", ""), undefined);
});

test("BatchIndex holds entries of any size", () => {
  const index = new BatchIndex();
  const largest = entryOf(9, "s".repeat(128), "é€🦄".repeat(28));
  const larger = entryOf(8, "s".repeat(500), "x".repeat(5000));
  const large = { ...entryOf(3, "a", "b"), events: Number.MAX_SAFE_INTEGER };
  index.add(largest);
  index.add(large);
  assert.equal(index.get(larger.source, larger.batch_id), undefined);
  index.add(larger);
  assert.deepEqual(index.get(larger.source, larger.batch_id), larger);
  assert.throws(() => index.add(larger), /committed once/);
  assert.deepEqual(index.get(largest.source, largest.batch_id), largest);
  assert.deepEqual(index.get("a", "b"), large);
  assert.equal(index.get(largest.source, largest.batch_id.slice(0, -2)), undefined);
});

test("BatchIndex refuses an identity a second time, and what is no entry", () => {
  const index = new BatchIndex();
  index.add(entryOf(1, "a", "b"));
  assert.throws(() => index.add(entryOf(2, "a", "b")), /committed once/);
  assert.throws(() => index.add({ ...entryOf(2, "a", "c"), batch_digest: "x" }), /canonical/);
  assert.throws(() => index.add(entryOf(2, "a", "\ud800")), /surrogate/);
  const twoBytes = { ...entryOf(2, "a", "c"), last_event_id: idAt(2).slice(0, -1) + "é" };
  assert.throws(() => index.add(twoBytes), /canonical/);
  assert.throws(() => index.add({ ...twoBytes, last_event_id: idAt(2) + "0" }), /canonical/);
  assert.deepEqual(index.get("a", "b"), entryOf(1, "a", "b"));
});

test(`BatchIndex answers as a map does (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const index = new BatchIndex();
  const map = new Map<string, BatchEntry>();
  for (let place = 0; place < 20_000; place++) {
    const source = `source-${random.below(3)}`;
    const batchId = `${random.pick(["", "é", "🦄"])}${random.below(9000)}`;
    const key = `${source} ${batchId}`;
    assert.deepEqual(index.get(source, batchId), map.get(key));
    if (map.has(key)) continue;
    const entry = entryOf(place, source, batchId);
    map.set(key, entry);
    index.add(entry);
  }
  for (const entry of map.values()) {
    assert.deepEqual(index.get(entry.source, entry.batch_id), entry);
  }
});
