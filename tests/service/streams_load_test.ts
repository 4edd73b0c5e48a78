/** A read that fails while `streams()` counts the streams up to an anchor. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { failNth } from "../support/storage_faults.ts";
import {
  ALL_STREAMS,
  countedThrough,
  replayAll,
  serviceWithStreams,
} from "../support/stream_listing.ts";
import { submit, submittedBatch } from "../support/submitted.ts";

test("streams() retries counting up to an anchor after a failed read", async () => {
  const { service, storage, ends } = await serviceWithStreams();
  storage.hook = failNth("read", 1, { errno: "EIO" });
  const page = () => service.streams({ ...ALL_STREAMS, through: ends[1] });
  await assert.rejects(page(), { code: "EIO" });
  await submit(service, submittedBatch("a", "3", ["x", "new"]));
  assert.deepEqual((await page()).streams, countedThrough(await replayAll(service), ends[1]!));
  await service.close();
});
