/** Zeros reserved after the last commit: when they are written, ignored and removed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageFullError, WriterPoisonedError } from "../../../src/log/storage/errors.ts";
import { TAIL_FILE } from "../../../src/log/storage/file_names.ts";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { ALL_DONE } from "../../support/simulated_crash.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { failNth, noRoomAfter } from "../../support/storage_faults.ts";
import { batchIdsOf, largeTailTree, openTestLog, tailOf } from "../../support/test_log.ts";
import { verifyStorage } from "../../support/verifying.ts";

const ZERO_TAIL = /\n\0+$/;
const textOf = (storage: SimulatedDisk) => tailOf(storage.tree()).toString("latin1");
const LARGE_TAIL = await largeTailTree();

async function openLarge() {
  const storage = new SimulatedDisk(LARGE_TAIL);
  return { storage, log: (await openTestLog(storage)).log };
}

test("append() overwrites reserved space, which readers and the next writer ignore", async () => {
  const { storage, log } = await openLarge();
  assert.doesNotMatch(textOf(storage), ZERO_TAIL, "a small tail has none");
  await log.append([preparedBatch("a")]);
  const sizeBytes = tailOf(storage.tree()).length;
  assert.match(textOf(storage), ZERO_TAIL);
  for (const batchId of ["b", "c", "d"]) await log.append([preparedBatch(batchId)]);
  assert.equal(tailOf(storage.tree()).length, sizeBytes);
  const { report } = await verifyStorage(storage);
  assert.deepEqual([report.ok, report.events_checked, report.remnants], [true, 5, []]);
  const killed = new SimulatedDisk(storage.tree());
  assert.deepEqual(await batchIdsOf(killed), ["large", "a", "b", "c", "d"]);
  assert.match(textOf(killed), /\n$/);
});

test("close() and rotation end the file with its last commit", async () => {
  for (const end of ["close", "seal"] as const) {
    const { storage, log } = await openLarge();
    await log.append([preparedBatch("a")]);
    assert.match(textOf(storage), ZERO_TAIL);
    if (end === "close") await log.close();
    else await log.seal(() => {}, { isStopped: () => true });
    for (const [path, bytes] of storage.tree()) assert.notEqual(bytes?.at(-1), 0, path);
  }
});

test("append() uses up a disk without room for reserved space", async () => {
  const { storage, log } = await openLarge();
  storage.hook = noRoomAfter(tailOf(storage.tree()).length + 10_000);
  let commits = 0;
  await assert.rejects(async () => {
    for (;; commits++) await log.append([preparedBatch(`${commits}`)]);
  }, StorageFullError);
  assert.ok(commits > 5, `${commits} commits fit`);
  assert.equal((await batchIdsOf(storage)).length, commits + 1);
});

test("verifyLog() sees whole commits while a writer uses up the reserved space", async () => {
  const { storage, log } = await openLarge();
  await log.append([preparedBatch("a")]);
  let reads = 0;
  storage.hook = async ({ kind, path }) => {
    if (kind !== "read" || path !== TAIL_FILE || ++reads !== 2) return null;
    const events = [{ payload: "x".repeat(50_000) }];
    for (let n = 0; n < 30; n++) await log.append([preparedBatch(`${n}`, { events })]);
    return null;
  };
  const { report } = await verifyLog(storage, { chain: true });
  assert.deepEqual([report.ok, report.events_checked, report.remnants], [true, 2, []]);
  assert.match(textOf(storage), ZERO_TAIL, "more space was reserved");
});

test("close() and rotation stop the writer if the space cannot be given back", async () => {
  for (const kind of ["truncate", "sync"] as const) {
    for (const end of ["close", "seal"] as const) {
      const { storage, log } = await openLarge();
      await log.append([preparedBatch("a")]);
      storage.hook = failNth(kind, 1, { errno: "EIO" });
      const ended = end === "close" ? log.close() : log.seal(() => {});
      await assert.rejects(ended, WriterPoisonedError, `${kind}, ${end}`);
      assert.deepEqual(await batchIdsOf(storage.crash(ALL_DONE)), ["large", "a"]);
    }
  }
});
