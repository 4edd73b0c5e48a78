/** The thread that makes segments: what it makes, what is told of one that fails, its throttle. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import { PENDING_FOLDER, SEGMENT_TEMPORARY_FILE } from "../../../src/log/storage/file_names.ts";
import { openLog } from "../../../src/log/log.ts";
import { sealThread } from "../../../src/log/sealing/seal_thread.ts";
import { inPlaceMaker, type SegmentTask } from "../../../src/log/sealing/segment_maker.ts";
import {
  SEAL_BACKLOG_BYTES_MAX,
  Throttle,
  WORK_SHARE_MIN,
} from "../../../src/log/sealing/throttle.ts";
import { removeIfThere } from "../../../src/log/storage/storage.ts";
import { GENESIS_HEAD_HEX } from "../../../src/event/chain.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { testTime } from "../../support/test_log.ts";

/** A folder with a pending file, and the task to make a segment of all of it. */
async function pendingIn(folder: string): Promise<SegmentTask> {
  const storage = fileStorage(folder);
  const log = await openLog({ ...testTime(), storage, report() {} });
  for (const batchId of ["a", "b"]) {
    const events = Array.from({ length: 300 }, (_, n) => ({ payload: `${n}`.repeat(50) }));
    await log.append([preparedBatch(batchId, { events })]);
  }
  // A sealing that is stopped behind the rotation.
  const isDone = await log.seal(() => {}, { isStopped: () => true });
  assert.ok(!isDone);
  await log.close();
  const [name] = await readdir(join(folder, PENDING_FOLDER));
  const path = `${PENDING_FOLDER}/${name}`;
  const { length: endBytes } = await readFile(join(folder, path));
  return { path, startBytes: 0, endBytes, previousHead: GENESIS_HEAD_HEX };
}

test("sealThread() makes the segment that is made in place, throttled or not", () =>
  withFolder(async (folder) => {
    const task = await pendingIn(folder);
    const storage = fileStorage(folder);
    let rowGroups = 0;
    const makers = [
      sealThread(folder),
      inPlaceMaker(storage),
      inPlaceMaker(storage, { throttle: () => void (rowGroups += 1) }),
    ];
    const made = [];
    for (const maker of makers) {
      const { facts, endBytes } = await maker.make(task);
      const bytes = await readFile(join(folder, SEGMENT_TEMPORARY_FILE));
      made.push({ facts, endBytes, bytes });
      await removeIfThere(storage, SEGMENT_TEMPORARY_FILE);
      await maker.close();
    }
    assert.equal(made[0]!.facts.events, 600);
    assert.equal(made[0]!.endBytes, task.endBytes);
    for (const other of made.slice(1)) assert.deepEqual(other, made[0]);
    assert.equal(rowGroups, 2, "one that is written, and read back");
  }));

test("sealThread() hands on why a segment could not be made, and makes the next", () =>
  withFolder(async (folder) => {
    const task = await pendingIn(folder);
    const maker = sealThread(folder);
    await assert.rejects(maker.make({ ...task, path: "pending/none" }), /ENOENT/);
    await assert.rejects(maker.make({ ...task, previousHead: "0".repeat(64) }), /chain head/);
    await removeIfThere(fileStorage(folder), SEGMENT_TEMPORARY_FILE);
    assert.equal((await maker.make(task)).facts.events, 600);
    await maker.close();
  }));

test("Throttle.workShare grows with the backlog, between its bounds", () => {
  const served = new Throttle();
  const sealing = new Throttle(served.memory);
  const shares = [0, 0.1, 0.5, 1, 100].map((part) => {
    served.backlogBytes = part * SEAL_BACKLOG_BYTES_MAX;
    return sealing.workShare;
  });
  assert.deepEqual(shares, [WORK_SHARE_MIN, WORK_SHARE_MIN, 0.5, 1, 1]);
  sealing.pause();
});
