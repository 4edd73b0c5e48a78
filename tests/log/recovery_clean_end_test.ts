/**
 * The bug: recovery did not write the empty commit of a clean shutdown again, although its fsync
 * may have failed. The system showed it from its cache, commits were acknowledged behind it, and
 * after a crash the log was refused as corrupt: what stood where the empty commit was had never
 * reached the disk.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { SECTOR_BYTES } from "../support/simulated_file.ts";
import { failNth } from "../support/storage_faults.ts";
import { commitOffsets, openTestLog, readAll } from "../support/test_log.ts";

/** A log whose shutdown failed in its fsync, with an end that lies in two sectors. */
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

test("openLog() writes the end of a clean shutdown again, as a failed fsync may have lost it", async () => {
  const disk = await diskWithLostEnd();
  const { log } = await openTestLog(disk);
  await log.append([preparedBatch("b")]);
  const { log: restarted, reports } = await openTestLog(disk.crash());
  const events = await readAll(restarted.snapshot);
  assert.deepEqual(events.map((event) => event.batch_id), ["a", "b"]);
  assert.deepEqual(reports, []);
});
