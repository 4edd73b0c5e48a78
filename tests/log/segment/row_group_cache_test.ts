import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ROW_GROUP_EVENTS_MAX } from "../../../src/limits.ts";
import {
  ROW_GROUP_CACHE_BYTES_MAX,
  RowGroupCache,
} from "../../../src/log/segment/row_group_cache.ts";
import { openSegment, type Segment } from "../../../src/log/segment/segment_reader.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { preparedBatch } from "../../support/prepared.ts";
import type { SimulatedDisk } from "../../support/simulated_disk.ts";
import { hostileBatch, sealCommits, smallBatches } from "../../support/test_segment.ts";

function linesOf(cache: RowGroupCache, segment: Segment, number: number): Promise<Buffer> {
  return cache.read(segment, number, (lines) => Buffer.from(lines));
}

function readsOf({ operations }: SimulatedDisk): number {
  return operations.filter(({ kind }) => kind === "read").length;
}

test("RowGroupCache.read() decodes a row group once, also for readers at the same time", async () => {
  const { storage } = await sealCommits([smallBatches(3000)]);
  const segment = await openSegment(storage, "0.parquet");
  const before = readsOf(storage);
  const expected = await segment.readRowGroup(1);
  const reads = readsOf(storage) - before;
  const cache = new RowGroupCache();
  const read = await Promise.all([1, 1, 1].map((number) => linesOf(cache, segment, number)));
  read.push(await linesOf(cache, segment, 1));
  assert.equal(readsOf(storage) - before, 2 * reads);
  for (const lines of read) assert.ok(lines.equals(expected));
});

test(`RowGroupCache.read() is right whatever was read before (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  // Row groups of many sizes, of which a few fit the cache: memory is used for several in turn.
  const large = Array.from({ length: 12 }, (_, n) => {
    const payload = "x".repeat(random.pick([1000, 2000, 4000, 5000]));
    return preparedBatch(`${n}`, {
      events: Array.from({ length: ROW_GROUP_EVENTS_MAX }, () => ({ payload: payload + n })),
    });
  });
  const hostile = Array.from({ length: 1500 }, (_, n) => hostileBatch(random, n, 1));
  const { storage, lines } = await sealCommits([large, hostile]);
  assert.ok(lines.length > ROW_GROUP_CACHE_BYTES_MAX);
  const segment = await openSegment(storage, "0.parquet");
  const expected: Buffer[] = [];
  for (const number of segment.rowGroups.keys()) expected.push(await segment.readRowGroup(number));
  const cache = new RowGroupCache();
  for (let step = 0; step < 60; step++) {
    const numbers = Array.from(
      { length: 1 + random.below(3) },
      () => random.below(expected.length),
    );
    const read = await Promise.all(numbers.map((number) => linesOf(cache, segment, number)));
    numbers.forEach((number, n) =>
      assert.ok(read[n]!.equals(expected[number]!), `row group ${number}`)
    );
  }
});

test("RowGroupCache.read() tells of a failed read and tries again, and others go on", async () => {
  const { storage } = await sealCommits([smallBatches(3000)]);
  const segment = await openSegment(storage, "0.parquet");
  const expected = await segment.readRowGroup(1);
  const cache = new RowGroupCache();
  let failures = 1;
  storage.hook = ({ kind }) => kind === "read" && failures-- > 0 ? { errno: "EIO" } : null;
  const [failed, other] = await Promise.allSettled([0, 1].map((n) => linesOf(cache, segment, n)));
  assert.equal(failed!.status, "rejected");
  assert.ok(other?.status === "fulfilled" && other.value.equals(expected));
  storage.hook = () => null;
  assert.ok((await linesOf(cache, segment, 0)).length > 0);
});
