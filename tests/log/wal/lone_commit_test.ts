/** Commits that block the thread: when they do, and how long readers wait for them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate, setTimeout } from "node:timers/promises";
import type { EventLogService } from "../../../src/service/event_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { type OperationHook, SimulatedDisk } from "../../support/simulated_disk.ts";
import { openTestService } from "../../support/test_service.ts";

/** Far more commits than it takes, even on a busy machine, to see a few quick ones in a row. */
const COMMITS_MAX = 10_000;
const SLOW_SYNC_MS = 50;
const SLOW_SYNCS = 10;

function isBlocked(storage: SimulatedDisk): boolean {
  return storage.operations.some(({ kind, callMode }) =>
    kind === "sync" && callMode === "blocking"
  );
}

/** Commits batches one by one until the sync of one blocks. */
async function commitUntilBlocked(
  storage: SimulatedDisk,
  commitOne: () => Promise<unknown>,
): Promise<void> {
  for (let commits = 0; !isBlocked(storage); commits++) {
    assert.ok(commits < COMMITS_MAX, "commits from a single client block while the disk is fast");
    storage.operations.length = 0;
    await commitOne();
  }
}

/** Replays until `isDone`; calls `onRead` after each event. */
async function readUntil(
  service: EventLogService,
  isDone: () => boolean,
  onRead: () => void,
): Promise<void> {
  while (!isDone()) {
    await service.replay({ after: undefined, filter: {}, limitEvents: 1 }).next();
    onRead();
    await setImmediate();
  }
}

test("append() blocks readers for at most one sync when the disk becomes slow", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  let commits = 0;
  const commitOne = () => service.append(preparedBatch(`batch ${commits++}`));
  await commitUntilBlocked(storage, commitOne);
  let stalls = 0;
  const slowly: OperationHook = ({ kind, callMode }) => {
    if (kind !== "sync") return null;
    if (callMode !== "blocking") return setTimeout(SLOW_SYNC_MS, null);
    stalls += 1;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SLOW_SYNC_MS);
    return null;
  };
  storage.hook = slowly;
  let reads = 0;
  let isDone = false;
  const reading = readUntil(service, () => isDone, () => reads += 1);
  for (let syncs = 0; syncs < SLOW_SYNCS; syncs++) {
    const [stallsBefore, readsBefore] = [stalls, reads];
    await commitOne();
    if (stalls === stallsBefore) assert.ok(reads > readsBefore, "reads continue during a sync");
  }
  isDone = true;
  await reading;
  assert.ok(stalls <= 1, `${stalls} slow syncs blocked the thread`);
  await service.close();
});

test("append() does not block for batches that arrive together, or for a large batch", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const events = Array.from({ length: 300 }, (_, n) => ({ recordKey: `${n}` }));
  for (let round = 0; round < 50; round++) {
    await Promise.all(["a", "b"].map((id) => service.append(preparedBatch(`${id} ${round}`))));
    await service.append(preparedBatch(`large ${round}`, { events }));
  }
  assert.ok(!isBlocked(storage));
  await service.close();
});
