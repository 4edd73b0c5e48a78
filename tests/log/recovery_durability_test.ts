/** Recovery makes everything that readers see durable. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  LOCK_FILE,
  MANIFEST_FILE,
  PENDING_FOLDER,
  SEGMENTS_FOLDER,
  TAIL_FILE,
} from "../../src/log/storage/file_names.ts";
import { appendBytes } from "../support/corrupt.ts";
import { preparedBatch } from "../support/prepared.ts";
import { rotateOnly, sealAll } from "../support/sealing.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { SECTOR_BYTES } from "../support/simulated_file.ts";
import { failNth } from "../support/storage_faults.ts";
import {
  batchIdsOf,
  commitOffsets,
  logTree,
  openTestLog,
  readBack,
  tailOf,
  unsealedBatches,
} from "../support/test_log.ts";

test("Log.close() closes on a full disk and reports that the clean-shutdown marker is missing", async () => {
  const storage = new SimulatedDisk(await logTree([["a"]]));
  const { log, reports } = await openTestLog(storage);
  storage.hook = ({ kind }) => kind === "write" ? { errno: "ENOSPC" } : null;
  await log.close();
  assert.equal(reports.length, 1);
  assert.match(reports[0]!, /clean-shutdown marker/);
  assert.equal(storage.openFiles, 0);
});

test("openLog() creates a durable empty log in an empty directory", async () => {
  for (const tree of [new Map(), new Map([[LOCK_FILE, Buffer.alloc(0)]])]) {
    const storage = new SimulatedDisk(tree);
    const { log, reports } = await openTestLog(storage);
    assert.equal(log.snapshot.frontier, null);
    assert.deepEqual([...await unsealedBatches(log), ...reports], []);
    const names = [MANIFEST_FILE, PENDING_FOLDER, SEGMENTS_FOLDER, TAIL_FILE, ...tree.keys()];
    assert.deepEqual([...storage.tree().keys()].sort(), names.sort());
    assert.deepEqual(storage.crash().tree(), storage.tree());
    await log.close();
    assert.equal(tailOf(storage.tree()).length, 0, "an empty log needs no clean shutdown marker");
    assert.equal(storage.openFiles, 0);
  }
});

test("openLog() fails when the directory does not exist, and does not create it", async () => {
  const storage = new SimulatedDisk();
  storage.list = () => Promise.resolve(null);
  await assert.rejects(openTestLog(storage), /does not exist/);
  assert.equal(storage.tree().size, 0);
});

test("openLog() creates empty directories that a copy omitted", async () => {
  const tree = await logTree([["a"]]);
  for (const folder of [PENDING_FOLDER, SEGMENTS_FOLDER]) tree.delete(folder);
  const storage = new SimulatedDisk(tree);
  const { log } = await openTestLog(storage);
  assert.notEqual(log.snapshot.frontier, null);
  assert.ok(storage.tree().has(PENDING_FOLDER) && storage.tree().has(SEGMENTS_FOLDER));
});

/**
 * A log whose shutdown failed in fsync. The last commit, which is empty and spans two sectors, is
 * in the page cache but not on the disk.
 */
async function diskWithLostEnd(): Promise<SimulatedDisk> {
  for (let length = 0;; length += 50) {
    const disk = new SimulatedDisk();
    const { log } = await openTestLog(disk);
    await log.append([preparedBatch("a", { events: [{ payload: "x".repeat(length) }] })]);
    disk.hook = failNth("sync", 1, { errno: "EIO" });
    await assert.rejects(log.close(), /EIO/);
    disk.hook = null;
    const [start, end] = commitOffsets(disk.contents(TAIL_FILE)).slice(-2);
    if (Math.floor(start! / SECTOR_BYTES) !== Math.floor(end! / SECTOR_BYTES)) return disk;
  }
}

test("openLog() rewrites the clean-shutdown marker, in case a failed fsync dropped its pages", async () => {
  const disk = await diskWithLostEnd();
  const { log } = await openTestLog(disk);
  await log.append([preparedBatch("b")]);
  assert.deepEqual(await batchIdsOf(disk.crash()), ["a", "b"]);
});

/**
 * A log whose remnant was removed only in the page cache, because the fsync failed. If the file
 * were rotated with its remnant, it would be refused, because a pending file has no remnant.
 */
async function diskWithLostTruncate(): Promise<SimulatedDisk> {
  const tree = await logTree([["a"], ["b"], ["c"]]);
  const tail = tailOf(tree);
  const remnant = tail.subarray(commitOffsets(tail).at(-2)!, tail.length - 100);
  const disk = new SimulatedDisk(tree.set(TAIL_FILE, appendBytes(tail, remnant)));
  disk.hook = failNth("sync", 1, { errno: "EIO" });
  await assert.rejects(openTestLog(disk), /EIO/);
  disk.hook = null;
  return disk;
}

test("openLog() makes the tail's length durable, in case a failed fsync lost it", async () => {
  const disk = await diskWithLostTruncate();
  const { log } = await openTestLog(disk);
  await log.close();
  const left = disk.crash().contents(TAIL_FILE);
  assert.ok(left.equals(disk.contents(TAIL_FILE)), "the remnant is gone");
});

test("openLog() accepts a tail that was rotated after its truncation was lost", async () => {
  const disk = await diskWithLostTruncate();
  await rotateOnly(disk);
  assert.deepEqual(await batchIdsOf(disk.crash()), ["a", "b", "c"]);
});

test("openLog() opens a log on a full disk that still has a sealed pending file", async () => {
  const disk = new SimulatedDisk(await logTree([["a"]]));
  await rotateOnly(disk);
  const pending = [...disk.tree()].filter(([path]) => path.startsWith(`${PENDING_FOLDER}/`));
  await sealAll(disk);
  const full = new SimulatedDisk(new Map([...disk.tree(), ...pending]));
  full.hook = ({ kind }) => kind === "write" ? { errno: "ENOSPC" } : null;
  const { reports } = await readBack(full);
  assert.match(`${reports}`, /^pending\/.*: sealed, but not removed until restart: .*free some/);
  full.hook = null;
  assert.deepEqual(await batchIdsOf(full), ["a"]);
});

/** Regression: the error from close() replaced the cause. */
test("openLog() reports why it failed even if it cannot close its files", async () => {
  const storage = new SimulatedDisk(await logTree([["a"]]));
  storage.hook = ({ kind, path }) => {
    if (kind === "close" && path === TAIL_FILE) return { errno: "EIO" };
    return kind === "truncate" ? { errno: "EROFS" } : null;
  };
  await assert.rejects(openTestLog(storage), /EROFS/);
});
