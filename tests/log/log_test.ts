/** The disk operations of `Log.append()`, and its behavior when they fail. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { StorageFullError, WriterPoisonedError } from "../../src/log/storage/errors.ts";
import { type OperationHook, SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { failNth, noRoomAfter } from "../support/storage_faults.ts";
import { logTree, openTestLog, readAll, tailOf, unsealedBatches } from "../support/test_log.ts";
import { verifyStorage } from "../support/verifying.ts";

function operationsFrom(storage: SimulatedDisk, start: number): string[] {
  return storage.operations.slice(start).map(({ kind, path }) => `${kind} ${path}`);
}

async function batchIdsAfterCrash(storage: SimulatedDisk): Promise<string[]> {
  const { log } = await openTestLog(storage.crash());
  const events = await readAll(log.snapshot);
  const batchIds = (await unsealedBatches(log)).map((entry) => entry.batch_id);
  assert.deepEqual(events.map((event) => event.batch_id), batchIds);
  return batchIds;
}

test("append() makes a commit durable with one write and one sync before it returns", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const before = storage.operations.length;
  await log.append([preparedBatch("a"), preparedBatch("b")]);
  assert.deepEqual(operationsFrom(storage, before), [`write ${TAIL_FILE}`, `sync ${TAIL_FILE}`]);
  assert.deepEqual(await batchIdsAfterCrash(storage), ["a", "b"]);
});

/** Faults that leave the outcome of a commit unknown. */
const POISONS: Record<string, OperationHook> = {
  "a write": failNth("write", 1, { errno: "EIO" }),
  "a partial write": failNth("write", 1, { errno: "EIO", writtenBytes: 100 }),
  "a write that had completed": failNth("write", 1, { errno: "EIO", writtenBytes: 100_000 }),
  "a sync": failNth("sync", 1, { errno: "EIO" }),
  "a sync that runs out of space": failNth("sync", 1, { errno: "ENOSPC" }),
  "the truncate of a rollback": both(
    failNth("write", 1, { errno: "ENOSPC", writtenBytes: 100 }),
    failNth("truncate", 1, { errno: "EIO" }),
  ),
  "the sync of a rollback": both(
    failNth("write", 1, { errno: "ENOSPC", writtenBytes: 100 }),
    failNth("sync", 1, { errno: "EIO" }),
  ),
};

function both(first: OperationHook, second: OperationHook): OperationHook {
  return async (operation) => await first(operation) ?? await second(operation);
}

for (const [name, hook] of Object.entries(POISONS)) {
  test(`append() rejects all commits after a failure of ${name}`, async () => {
    const storage = new SimulatedDisk();
    const { log } = await openTestLog(storage);
    await log.append([preparedBatch("a")]);
    const before = await readAll(log.snapshot);
    storage.hook = hook;
    await assert.rejects(log.append([preparedBatch("b")]), WriterPoisonedError);
    const operations = storage.operations.length;
    for (const batchId of ["b", "c"]) {
      await assert.rejects(log.append([preparedBatch(batchId)]), WriterPoisonedError);
    }
    assert.equal(storage.operations.length, operations, "nothing is retried");
    assert.ok(log.poison instanceof WriterPoisonedError);
    assert.deepEqual(await readAll(log.snapshot), before);
    await log.close();
    assert.equal(storage.openFiles, 0);
    const durable = await batchIdsAfterCrash(storage);
    assert.deepEqual(durable, ["a"]);
    const reopened = await openTestLog(new SimulatedDisk(storage.tree()));
    const entries = await unsealedBatches(reopened.log);
    assert.deepEqual(entries[0]?.batch_id, "a", "batch a is present, and the failed one may be");
  });
}

for (const errno of ["ENOSPC", "EDQUOT", "EFBIG"]) {
  test(`append() rolls back a commit that fails with ${errno} after any byte`, async () => {
    const start = await logTree([["a"]]);
    const tail = tailOf(start);
    const whole = tailOf(await logTree([["a"], ["b"]]));
    const step = errno === "ENOSPC" ? 1 : 97;
    let storage = new SimulatedDisk();
    for (let roomBytes = tail.length; roomBytes < whole.length; roomBytes += step) {
      storage = new SimulatedDisk(start);
      const { log } = await openTestLog(storage);
      const before = storage.operations.length;
      storage.hook = noRoomAfter(roomBytes, errno);
      await assert.rejects(log.append([preparedBatch("b")]), StorageFullError);
      assert.deepEqual(
        operationsFrom(storage, before),
        ["write", "truncate", "sync"].map((kind) => `${kind} ${TAIL_FILE}`),
      );
      for (const left of [storage.tree(), storage.crash().tree()]) {
        assert.ok(tailOf(left).equals(tail), `space for ${roomBytes} bytes`);
      }
      assert.equal(log.poison, null);
      assert.equal((await readAll(log.snapshot)).length, 1);
      storage.hook = null;
      await log.append([preparedBatch("b")]);
      assert.deepEqual(await batchIdsAfterCrash(storage), ["a", "b"]);
    }
    assert.equal((await verifyStorage(storage)).failure, null, "ids and chain continue");
  });
}
