/** The thread that writes segments: output, failures and throttling. */
import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import { PENDING_FOLDER, SEGMENT_TEMPORARY_FILE } from "../../../src/log/storage/file_names.ts";
import { openLog } from "../../../src/log/log.ts";
import { sealThread } from "../../../src/log/sealing/seal_thread.ts";
import { makeSegment, type SegmentTask } from "../../../src/log/sealing/segment_maker.ts";
import { removeIfThere } from "../../../src/log/storage/storage.ts";
import { GENESIS_HEAD_HEX } from "../../../src/event/chain.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { testTime } from "../../support/test_log.ts";

/** Creates a pending file. @returns the task that seals it into one segment. */
async function pendingIn(folder: string): Promise<SegmentTask> {
  const storage = fileStorage(folder);
  const log = await openLog({ ...testTime(), storage, report() {} });
  const events = Array.from({ length: 300 }, (_, n) => ({ payload: `${n}`.repeat(50) }));
  for (const batchId of ["a", "b"]) await log.append([preparedBatch(batchId, { events })]);
  // Rotates the tail but seals nothing.
  assert.ok(!(await log.seal(() => {}, { isStopped: () => true })));
  await log.close();
  const path = `${PENDING_FOLDER}/${await readdir(join(folder, PENDING_FOLDER))}`;
  const { size: endBytes } = await stat(join(folder, path));
  return { path, startBytes: 0, endBytes, previousHead: GENESIS_HEAD_HEX, backlogBytes: 0 };
}

test("sealThread() writes the same segment as an in-process seal, even after a failure", () =>
  withFolder(async (folder) => {
    const task = await pendingIn(folder);
    const storage = fileStorage(folder);
    const maker = sealThread(folder);
    await assert.rejects(maker.make({ ...task, path: "pending/none" }), /ENOENT/);
    await assert.rejects(maker.make({ ...task, previousHead: "0".repeat(64) }), /chain head/);
    let rowGroups = 0;
    const throttle = () => void (rowGroups += 1);
    const made = [];
    for (const make of [maker.make, () => makeSegment(storage, task, { throttle })]) {
      await removeIfThere(storage, SEGMENT_TEMPORARY_FILE);
      const { facts, endBytes } = await make(task);
      const bytes = await readFile(join(folder, SEGMENT_TEMPORARY_FILE));
      made.push({ facts, endBytes, bytes });
    }
    await maker.close();
    assert.deepEqual([made[0]!.facts.events, made[0]!.endBytes], [600, task.endBytes]);
    assert.deepEqual(made[1], made[0]);
    assert.equal(rowGroups, 2, "one row group is written, then read back");
  }));
