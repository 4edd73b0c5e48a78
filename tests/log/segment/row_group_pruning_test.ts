import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { test } from "node:test";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import { ROW_GROUP_EVENTS_MAX } from "../../../src/limits.ts";
import { type EventFilter, lineMatcher } from "../../../src/log/line/stored_line.ts";
import { pruneRowGroups } from "../../../src/log/segment/row_group_pruning.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { preparedBatch } from "../../support/prepared.ts";
import {
  hostileCommits,
  sealCommits,
  smallBatches,
  splitLines,
} from "../../support/test_segment.ts";

test(`pruneRowGroups() leaves out no row group with a match (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const commits = [...hostileCommits(random), smallBatches(4000)];
  const { storage } = await sealCommits(commits);
  const segment = await openSegment(storage, "0.parquet");
  const groups: Buffer[][] = [];
  for (const number of segment.rowGroups.keys()) {
    groups.push(splitLines(await segment.readRowGroup(number)));
  }
  for (let run = 0; run < 20; run++) {
    const event: CommittedEvent = JSON.parse(random.pick(random.pick(groups)).toString());
    const filter: EventFilter = {
      ...(random.chance(0.5) && { source: event.source }),
      ...(random.chance(0.5) && { stream: event.stream }),
      ...(random.chance(0.5) && { recordKey: event.record_key }),
      ...(random.chance(0.5) && { kind: event.kind }),
    };
    const matches = lineMatcher(filter) ?? (() => true);
    const left = await pruneRowGroups(segment, filter);
    groups.forEach((lines, number) => {
      if (lines.some((line) => matches(line, 0))) {
        assert.ok(left.includes(number), JSON.stringify(filter));
      }
    });
  }
});

test("pruneRowGroups() prunes by column statistics and by Bloom filters", async () => {
  const batches = [
    ...smallBatches(ROW_GROUP_EVENTS_MAX),
    preparedBatch("last", { source: "zoo", events: [{ stream: "rare", kind: "deleted" }] }),
  ];
  const { storage } = await sealCommits([batches]);
  const segment = await openSegment(storage, "0.parquet");
  assert.deepEqual(await pruneRowGroups(segment, {}), [0, 1]);
  assert.deepEqual(await pruneRowGroups(segment, {}, 1), [1]);
  assert.deepEqual(await pruneRowGroups(segment, { source: "zoo" }), [1]);
  assert.deepEqual(await pruneRowGroups(segment, { source: "shop" }), [0]);
  assert.deepEqual(await pruneRowGroups(segment, { source: "shop" }, 1), []);
  assert.deepEqual(await pruneRowGroups(segment, { kind: "deleted" }), [1]);
  assert.deepEqual(await pruneRowGroups(segment, { stream: "rare" }), [1]);
  assert.deepEqual(await pruneRowGroups(segment, { stream: "stream-22" }), []);
  assert.deepEqual(await pruneRowGroups(segment, { recordKey: "key-77" }), [0]);
});
