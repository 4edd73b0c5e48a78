/** `streams()` reads the log only for uncached anchors, and such reads can fail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SimulatedDisk } from "../support/simulated_disk.ts";
import { failNth } from "../support/storage_faults.ts";
import {
  ALL_STREAMS,
  countedThrough,
  replayAll,
  serviceWithStreams,
} from "../support/stream_listing.ts";
import { submit, submittedBatch } from "../support/submitted.ts";
import { STREAM_SNAPSHOTS_MAX } from "../../src/service/streams.ts";

function readsOf({ operations }: SimulatedDisk): number {
  return operations.filter(({ kind }) => kind === "read").length;
}

test("streams() caches the most recently used anchors", async () => {
  const { service, storage } = await serviceWithStreams();
  const anchors = (await replayAll(service)).map((event) => event.event_id);
  const page = (place: number) => service.streams({ ...ALL_STREAMS, through: anchors[place]! });
  for (let place = 0; place < STREAM_SNAPSHOTS_MAX; place++) await page(place);
  await page(0);
  await page(STREAM_SNAPSHOTS_MAX);
  const readsBefore = readsOf(storage);
  await page(0);
  assert.equal(readsOf(storage), readsBefore);
  await page(1);
  assert.ok(readsOf(storage) > readsBefore);
  await service.close();
});

test("streams() retries counting up to an anchor after a failed read", async () => {
  const { service, storage, ends } = await serviceWithStreams();
  storage.hook = failNth("read", 1, { errno: "EIO" });
  const page = () => service.streams({ ...ALL_STREAMS, through: ends[1] });
  await assert.rejects(page(), { code: "EIO" });
  await submit(service, submittedBatch("a", "3", ["x", "new"]));
  assert.deepEqual((await page()).streams, countedThrough(await replayAll(service), ends[1]!));
  await service.close();
});
