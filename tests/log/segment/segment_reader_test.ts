import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ScanMemory } from "../../../src/log/read/scan_memory.ts";
import { findBatch } from "../../../src/log/segment/segment_reader.ts";
import { ROW_GROUP_BYTES_SOFT_MAX } from "../../../src/log/segment/segment_writer.ts";
import type { BatchEntry } from "../../../src/log/wal/commit_frame.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { failNth } from "../../support/storage_faults.ts";
import {
  historyOf,
  hostileBatch,
  openSegment,
  sealCommits,
  smallBatches,
} from "../../support/test_segment.ts";

test("a row group ends before its lines exceed the limit but holds at least one event", async () => {
  const payloads = [1, ROW_GROUP_BYTES_SOFT_MAX + 1, 1, 1, ROW_GROUP_BYTES_SOFT_MAX / 2 - 2000];
  const events = payloads.map((length) => ({ payload: "x".repeat(length) }));
  const { storage } = await sealCommits([[preparedBatch("a", { events })]]);
  const segment = openSegment(storage, "0.parquet");
  const rowGroups = await segment.rowGroups();
  assert.deepEqual(rowGroups.map(({ rows }) => rows), [1, 1, 3]);
});

test(`findBatch() finds every batch, even across row groups (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const commits = [
    [hostileBatch(random, 0, 3), preparedBatch("large", { events: Array(9500).fill({}) })],
    [hostileBatch(random, 1, 1), preparedBatch("same"), preparedBatch("same", { source: "b" })],
    smallBatches(3000),
  ];
  const { storage, entries } = await sealCommits(commits);
  const segment = openSegment(storage, "0.parquet");
  for (const entry of [...entries.slice(0, 30), ...entries.slice(-30)]) {
    assert.deepEqual(await findBatch(segment, entry.source, entry.batch_id), entry);
  }
});

test("Segment.rowFilters() retries a failed read", async () => {
  const { storage, entries } = await sealCommits([smallBatches(500)]);
  const segment = openSegment(storage, "0.parquet");
  const [{ batch_id }] = entries as [BatchEntry];
  storage.hook = failNth("read", 1, { errno: "EIO" });
  await assert.rejects(findBatch(segment, "shop", batch_id), { code: "EIO" });
  assert.deepEqual(await findBatch(segment, "shop", batch_id), entries[0]);
});

test("Segment.lines() reads only the lines for a key, and little for an absent key", async () => {
  const { storage, segments } = await sealCommits([smallBatches(5000)]);
  const { files: [segment] } = historyOf(storage, segments);
  const keysOf = async (recordKey: string) => {
    const filter = { recordKey };
    const wanted = { after: undefined, filter, wantedBytes: () => 1, memory: new ScanMemory() };
    const chunks: Buffer[] = [];
    for await (const chunk of segment!.lines(wanted)) chunks.push(Buffer.from(chunk));
    const lines = Buffer.concat(chunks).toString().split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line).record_key);
  };
  assert.deepEqual(await keysOf("key-2500"), ["key-2500"]);
  assert.deepEqual(await keysOf("key-4999"), ["key-4999"]);
  const before = storage.operations.length;
  for (let absent = 0; absent < 2000; absent++) {
    assert.deepEqual(await keysOf(`absent-${absent}`), []);
  }
  const reads = storage.operations.slice(before).filter(({ kind }) => kind === "read");
  assert.equal(reads.length, 2000, "each lookup reads one page of the index");
  const bytes = storage.contents("0.parquet").length;
  assert.ok(reads.every(({ sizeBytes }) => sizeBytes! < bytes / 40), "only the key column is read");
});
