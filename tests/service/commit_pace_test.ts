/** Which commits block the thread, and for how long readers wait for them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate, setTimeout } from "node:timers/promises";
import { CommitPace } from "../../src/service/commit_pace.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { preparedBatch } from "../support/prepared.ts";
import { type OperationHook, SimulatedDisk } from "../support/simulated_disk.ts";
import { openTestService } from "../support/test_service.ts";

const SMALL_BYTES = 1000;
const QUICK = { tookMs: 0.2, isLone: true };
/** Many more commits than a busy machine needs for a few quick ones in a row. */
const COMMITS_MAX = 10_000;
const SLOW_SYNC_MS = 50;
const SLOW_SYNCS = 10;

/** A pace that has seen `commits` quick commits of a lone writer. */
function paceAfter(commits: number): CommitPace {
  const pace = new CommitPace();
  for (let number = 0; number < commits; number++) pace.note(QUICK);
  return pace;
}

test("mode() blocks for a lone writer's quick commits, except for every 16th", () => {
  const modes = Array.from({ length: 40 }, (_, commits) => paceAfter(commits).mode(SMALL_BYTES));
  const pooled = modes.flatMap((mode, place) => mode === "pooled" ? [place] : []);
  assert.deepEqual(pooled, [0, 1, 2, 3, 16, 32]);
});

test("mode() blocks for no large commit", () => {
  assert.equal(paceAfter(10).mode(64 * 1024), "blocking");
  assert.equal(paceAfter(10).mode(64 * 1024 + 1), "pooled");
});

for (
  const [name, commit] of [
    ["a slow commit", { ...QUICK, tookMs: 1.1 }],
    ["company", { ...QUICK, isLone: false }],
  ] as const
) {
  test(`mode() does not block again before four quick commits after ${name}`, () => {
    const pace = paceAfter(10);
    pace.note(commit);
    for (let commits = 0; commits < 4; commits++) {
      assert.equal(pace.mode(SMALL_BYTES), "pooled");
      pace.note(QUICK);
    }
    assert.equal(pace.mode(SMALL_BYTES), "blocking");
  });
}

/** Commits batches one by one until the sync of one blocks. */
async function commitUntilBlocked(
  storage: SimulatedDisk,
  commitOne: () => Promise<unknown>,
): Promise<void> {
  const isBlocked = () => storage.operations.at(-1)?.callMode === "blocking";
  for (let commits = 0; !isBlocked(); commits++) {
    assert.ok(commits < COMMITS_MAX, "the commits of a lone writer block when the disk is quick");
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

test("append() stalls readers for one sync at most when the disk becomes slow", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage, 0);
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
    if (stalls === stallsBefore) assert.ok(reads > readsBefore, "readers go on during a sync");
  }
  isDone = true;
  await reading;
  assert.ok(stalls <= 1, `${stalls} slow syncs blocked the thread`);
  await service.close();
});

test("append() never blocks for batches that arrive together", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  for (let round = 0; round < 50; round++) {
    await Promise.all(
      ["a", "b"].map((writer) => service.append(preparedBatch(`${writer} ${round}`))),
    );
  }
  assert.ok(storage.operations.every(({ callMode }) => callMode !== "blocking"));
  await service.close();
});
