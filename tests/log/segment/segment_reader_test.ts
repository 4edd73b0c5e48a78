import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { findBatch, openSegment, type Segment } from "../../../src/log/segment/segment_reader.ts";
import type { BatchEntry } from "../../../src/log/wal/commit_frame.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { failNth } from "../../support/storage_faults.ts";
import {
  hostileBatch,
  hostileCommits,
  readRowGroup,
  sealCommits,
  smallBatches,
} from "../../support/test_segment.ts";
import { ROW_GROUP_BYTES_SOFT_MAX } from "../../../src/log/segment/segment_writer.ts";

async function readLines(segment: Segment): Promise<Buffer> {
  const groups = [];
  const rowGroups = await segment.rowGroups();
  for (const number of rowGroups.keys()) groups.push(await readRowGroup(segment, number));
  return Buffer.concat(groups);
}

test(`a segment restores the exact bytes of the sealed lines (seed ${SEED})`, async () => {
  const { storage, segments, lines } = await sealCommits(hostileCommits(new SeededRandom()));
  assert.equal(segments.length, 1);
  const segment = await openSegment(storage, "0.parquet");
  assert.ok((await readLines(segment)).equals(lines));
  await segment.close();
  assert.equal(storage.openFiles, 0);
});

test("a row group ends before its lines exceed the limit but holds at least one event", async () => {
  const payloads = [1, ROW_GROUP_BYTES_SOFT_MAX + 1, 1, 1, ROW_GROUP_BYTES_SOFT_MAX / 2 - 2000];
  const events = payloads.map((length) => ({ payload: "x".repeat(length) }));
  const { storage, lines } = await sealCommits([[preparedBatch("a", { events })]]);
  const segment = await openSegment(storage, "0.parquet");
  const rowGroups = await segment.rowGroups();
  assert.deepEqual(rowGroups.map(({ rows }) => rows), [1, 1, 3]);
  assert.ok((await readLines(segment)).equals(lines));
});

test(`findBatch() finds every batch, even across row groups (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const commits = [
    [hostileBatch(random, 0, 3), preparedBatch("large", { events: Array(9500).fill({}) })],
    [hostileBatch(random, 1, 1), preparedBatch("same"), preparedBatch("same", { source: "b" })],
    smallBatches(3000),
  ];
  const { storage, entries } = await sealCommits(commits);
  const segment = await openSegment(storage, "0.parquet");
  for (const entry of [...entries.slice(0, 30), ...entries.slice(-30)]) {
    assert.deepEqual(await findBatch(segment, entry.source, entry.batch_id), entry);
  }
});

test("Segment.rowFilters() retries a failed read", async () => {
  const { storage, entries } = await sealCommits([smallBatches(500)]);
  const segment = await openSegment(storage, "0.parquet");
  const [{ batch_id }] = entries as [BatchEntry];
  storage.hook = failNth("read", 1, { errno: "EIO" });
  await assert.rejects(findBatch(segment, "shop", batch_id), { code: "EIO" });
  assert.deepEqual(await findBatch(segment, "shop", batch_id), entries[0]);
});
