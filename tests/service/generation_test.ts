import assert from "node:assert/strict";
import { test } from "node:test";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import { Generation } from "../../src/service/generation.ts";

function idAt(place: number): string {
  return `019b7c4e-2d37-7a01-8f00-${place.toString(16).padStart(12, "0")}`;
}

function entryOf(place: number, source: string, batchId: string): BatchEntry {
  return {
    batch_digest: place.toString(16).padStart(64, "0f"),
    batch_id: batchId,
    events: place,
    first_event_id: idAt(place),
    last_event_id: place === 1 ? idAt(place) : idAt(2 * place),
    source,
  };
}

/** What a batch adds to its only stream. */
function growth({ events, last_event_id }: BatchEntry) {
  return [{ stream: "s", events, lastEventId: last_event_id }];
}

test("Generation keeps identities apart by source and by batch id", () => {
  const generation = new Generation();
  const entries = [["a", "b"], ["a", "c"], ["a.b", "c"], ["b", "b"], ["a", "é🦄 d"], ["a", "C"]]
    .map(([source, batchId], place) => entryOf(place + 1, source!, batchId!));
  for (const entry of entries) {
    assert.equal(generation.findBatch(entry.source, entry.batch_id), undefined);
    generation.add(entry, growth(entry));
  }
  for (const entry of entries) {
    assert.deepEqual(generation.findBatch(entry.source, entry.batch_id), entry);
  }
  assert.equal(generation.findBatch("a", "é🦄 "), undefined);
  assert.equal(generation.findBatch("c", "a"), undefined);
  assert.equal(generation.findBatch("a", ""), undefined);
  assert.equal(generation.frontierOf("a"), entries.at(-1)!.last_event_id);
  assert.equal(generation.frontierOf("c"), undefined);
});

test("Generation refuses an identity a second time, and a frontier that does not move on", () => {
  const generation = new Generation();
  const entry = entryOf(3, "a", "b");
  generation.add(entry, growth(entry));
  assert.throws(() => generation.addRecovered(entry), /committed once/);
  const next = entryOf(4, "a", "c");
  assert.throws(() => generation.add(next, growth(entry)), /frontier moves on/);
  assert.throws(() => generation.add(next, []), /grows a stream/);
  assert.deepEqual(generation.findBatch("a", "b"), entry);
});

test("Generation tells of no streams before those that a start found are counted", () => {
  const generation = new Generation();
  assert.ok(generation.isCounted);
  generation.addRecovered(entryOf(1, "a", "b"));
  assert.ok(!generation.isCounted);
  assert.throws(() => generation.streams, /are counted/);
});
