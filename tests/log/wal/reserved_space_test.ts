/** Zeros reserved after the last commit: when they are written, ignored and removed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StorageFullError, WriterPoisonedError } from "../../../src/log/storage/errors.ts";
import { RESERVED_BYTES } from "../../../src/log/wal/tail_writer.ts";
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
  const reopened = await openTestLog(killed);
  assert.deepEqual(reopened.reports, []);
  assert.match(textOf(killed), /\n$/);
  assert.deepEqual(await batchIdsOf(killed), ["large", "a", "b", "c", "d"]);
});

test("append() reserves again once the space is used", async () => {
  const { storage, log } = await openLarge();
  const sizes = new Set<number>();
  const payload = "x".repeat(50_000);
  for (let batch = 0; batch * payload.length < 2 * RESERVED_BYTES; batch++) {
    await log.append([preparedBatch(`${batch}`, { events: [{ payload }] })]);
    sizes.add(tailOf(storage.tree()).length);
  }
  assert.equal(sizes.size, 2);
});

test("close() and rotation end the file with its last commit", async () => {
  for (const end of ["close", "seal"] as const) {
    const { storage, log } = await openLarge();
    await log.append([preparedBatch("a")]);
    assert.match(textOf(storage), ZERO_TAIL);
    if (end === "close") await log.close();
    else await log.seal(() => {}, { isStopped: () => true });
    const files = [...storage.tree()].filter(([path]) => path.endsWith(".ndjson"));
    for (const [path, bytes] of files) assert.notEqual(bytes?.at(-1), 0, `${end}: ${path}`);
  }
});

test("append() refuses a commit on a disk without room for reserved space, and continues later", async () => {
  const { storage, log } = await openLarge();
  const sizeBytes = tailOf(storage.tree()).length;
  storage.hook = noRoomAfter(sizeBytes + 10_000);
  await assert.rejects(log.append([preparedBatch("a")]), StorageFullError);
  assert.equal(tailOf(storage.tree()).length, sizeBytes);
  await log.append([preparedBatch("b")]);
  storage.hook = null;
  assert.deepEqual(await batchIdsOf(storage), ["large", "b"]);
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
