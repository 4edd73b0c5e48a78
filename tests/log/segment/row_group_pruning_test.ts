import assert from "node:assert/strict";
import { test } from "node:test";
import { ROW_GROUP_EVENTS_MAX } from "../../../src/limits.ts";
import type { EventFilter } from "../../../src/log/line/stored_line.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { sealCommits, smallBatches } from "../../support/test_segment.ts";

test("prune() prunes by ids and the index", async () => {
  const batches = [
    ...smallBatches(ROW_GROUP_EVENTS_MAX),
    preparedBatch("last", { source: "zoo", events: [{ stream: "rare", kind: "deleted" }] }),
  ];
  const { storage, entries } = await sealCommits([batches]);
  const segment = await openSegment(storage, "0.parquet");
  const endOfFirst = entries.at(-2)!.last_event_id;
  const cases: [filter: EventFilter, after: string | undefined, left: number[]][] = [
    [{}, undefined, [0, 1]],
    [{}, endOfFirst, [1]],
    [{}, entries.at(-1)!.last_event_id, []],
    [{ source: "zoo" }, undefined, [1]],
    [{ source: "shop" }, undefined, [0]],
    [{ source: "shop" }, endOfFirst, []],
    [{ kind: "deleted" }, undefined, [1]],
    [{ stream: "rare" }, undefined, [1]],
    [{ stream: "stream-22" }, undefined, []],
    [{ recordKey: "key-77" }, undefined, [0]],
    [{ recordKey: "key-77", stream: "rare" }, undefined, []],
  ];
  for (const [filter, after, left] of cases) {
    assert.deepEqual(await segment.prune({ filter, after }), left);
  }
});
