/**
 * The bug: a recovery cut a remnant off, and its fsync failed. The next one on the same machine saw
 * the shorter file in the cache of the system and made nothing of it, so the disk kept the longer
 * one. Rotated so and found after a crash, it was refused as corrupt: a pending file has no
 * remnants.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { appendBytes } from "../support/corrupt.ts";
import { rotateOnly } from "../support/sealing.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { failNth } from "../support/storage_faults.ts";
import { commitOffsets, logTree, openTestLog, readAll, tailOf } from "../support/test_log.ts";

/** A log whose remnant is cut off, but that is not on the disk: the fsync failed. */
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

test("openLog() makes the end of the tail durable again, as a failed fsync may have lost it", async () => {
  const disk = await diskWithLostTruncate();
  const { log } = await openTestLog(disk);
  await log.close();
  const left = disk.crash().contents(TAIL_FILE);
  assert.ok(left.equals(disk.contents(TAIL_FILE)), "nothing is left of the remnant");
});

test("openLog() takes a tail that was rotated after its truncation was lost", async () => {
  const disk = await diskWithLostTruncate();
  await rotateOnly(disk);
  const { log, reports } = await openTestLog(disk.crash());
  const events = await readAll(log.snapshot);
  assert.deepEqual(events.map((event) => event.batch_id), ["a", "b", "c"]);
  assert.deepEqual(reports, []);
});
