import assert from "node:assert/strict";
import { test } from "node:test";
import type { Log } from "../../src/log/log.ts";
import { type FollowPosition, LivePages } from "../../src/service/follow.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { failNth } from "../support/storage_faults.ts";
import { openTestLog } from "../support/test_log.ts";

const FROM_START: FollowPosition = { after: undefined, filter: {}, limitEvents: 10, phase: "live" };

function read(pages: LivePages, { snapshot }: Log, at: FollowPosition) {
  return pages.read(snapshot, at, () => true, () => Promise.resolve(() => {}));
}

test("LivePages.read() retries after a failed read", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  await log.append([preparedBatch("1")]);
  const pages = new LivePages();
  storage.hook = failNth("read", 1, { errno: "EIO" });
  const failures = [1, 2].map(async () => await read(pages, log, FROM_START));
  for (const failure of failures) await assert.rejects(failure, { code: "EIO" });
  const { lastEventId } = await read(pages, log, FROM_START);
  assert.equal(lastEventId, log.snapshot.frontier);
});

test("LivePages.read() counts all that wait for a page before one of them can release it", async () => {
  const { log } = await openTestLog(new SimulatedDisk());
  await log.append([preparedBatch("1")]);
  const pages = new LivePages();
  const users = [1, 2, 3].map(async () => (await read(pages, log, FROM_START)).users);
  assert.deepEqual(await Promise.all(users), [3, 3, 3]);
});
