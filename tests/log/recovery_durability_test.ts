/** What recovery makes durable, and what it refuses to pass over. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PENDING_FOLDER, SEGMENTS_FOLDER, TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { CorruptLogError } from "../../src/log/storage/errors.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { commitOffsets, logTree, openTestLog, tailOf } from "../support/test_log.ts";

/** The writes and syncs of the tail, in order. */
function tailWrites(storage: SimulatedDisk): string[] {
  return storage.operations
    .filter(({ kind, path }) => path === TAIL_FILE && (kind === "write" || kind === "sync"))
    .map(({ kind, position, sizeBytes }) =>
      kind === "sync" ? "sync" : `write ${position} +${sizeBytes}`
    );
}

test("openLog() writes the last commit again before its sync, as a failed fsync may have lost it", async () => {
  const tree = await logTree([["a"], ["b"]]);
  const lastCommit = commitOffsets(tailOf(tree)).at(-2)!;
  const storage = new SimulatedDisk(tree);
  await openTestLog(storage);
  assert.deepEqual(tailWrites(storage), [
    `write ${lastCommit} +${tailOf(tree).length - lastCommit}`,
    "sync",
  ]);
  assert.ok(tailOf(storage.tree()).equals(tailOf(tree)));
});

test("openLog() refuses a pending file whose name tells no range", async () => {
  const tree = await logTree([["a"]]);
  tree.set(`${PENDING_FOLDER}/copy of a tail.ndjson`, tailOf(tree));
  await assert.rejects(openTestLog(new SimulatedDisk(tree)), CorruptLogError);
});

test("Log.close() on a full disk closes, and reports that the mark of a clean end is missing", async () => {
  const storage = new SimulatedDisk(await logTree([["a"]]));
  const { log, reports } = await openTestLog(storage);
  storage.hook = ({ kind }) => kind === "write" ? { errno: "ENOSPC" } : null;
  await log.close();
  assert.equal(reports.length, 1);
  assert.match(reports[0]!, /clean end/);
  assert.equal(storage.openFiles, 0);
});

test("openLog() makes the empty folders that a copy has left out", async () => {
  const tree = await logTree([["a"]]);
  for (const folder of [PENDING_FOLDER, SEGMENTS_FOLDER]) tree.delete(folder);
  const storage = new SimulatedDisk(tree);
  const { log } = await openTestLog(storage);
  assert.notEqual(log.snapshot.frontier, null);
  assert.ok(storage.tree().has(PENDING_FOLDER) && storage.tree().has(SEGMENTS_FOLDER));
});
