import assert from "node:assert/strict";
import { test } from "node:test";
import { BatchIndex } from "../../../src/log/wal/batch_index.ts";
import type { BatchEntry } from "../../../src/log/wal/commit_frame.ts";
import { idAt } from "../../support/event_ids.ts";

function entryOf(place: number, source: string, batchId: string): BatchEntry {
  return {
    batch_digest: place.toString(16).padStart(64, "0f"),
    batch_id: batchId,
    events: 1,
    first_event_id: idAt(place),
    last_event_id: idAt(place),
    source,
  };
}

test("BatchIndex distinguishes identities by source and by batch id", () => {
  const index = new BatchIndex();
  const entries = [["a", "b"], ["a", "c"], ["a.b", "c"], ["b", "b"], ["a", "é🦄 d"], ["a", "C"]]
    .map(([source, batchId], place) => entryOf(place + 1, source!, batchId!));
  for (const entry of entries) {
    assert.equal(index.findBatch(entry.source, entry.batch_id), null);
    index.add(entry);
  }
  for (const entry of entries) {
    assert.deepEqual(index.findBatch(entry.source, entry.batch_id), entry);
  }
  for (const [source, batchId] of [["a", "é🦄 "], ["c", "a"], ["a", ""]]) {
    assert.equal(index.findBatch(source!, batchId!), null);
  }
  assert.equal(index.sourceFrontier("a"), entries.at(-1)!.last_event_id);
  assert.equal(index.sourceFrontier("c"), null);
});

test("BatchIndex rejects a duplicate identity and a frontier that does not advance", () => {
  const index = new BatchIndex();
  index.add(entryOf(3, "a", "b"));
  assert.throws(() => index.add(entryOf(4, "a", "b")), /batch b of source a is committed twice/);
  assert.throws(() => index.add(entryOf(3, "a", "c")), /frontier must advance/);
  const growth = { source: "a", stream: "s", events: 2, lastEventId: idAt(3) };
  index.grow(growth);
  assert.throws(() => index.grow(growth), /event ids out of order in stream a\/s: \S+ after/);
});
