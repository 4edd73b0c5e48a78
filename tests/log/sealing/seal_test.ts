/** The files and reports from `Log.seal()`. Reads return the same data before and after a seal. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { pendingPaths } from "../../support/forged_log.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { rotateOnly, sealAll, stopping } from "../../support/sealing.ts";
import { appendTo, batchIdsOf, logTree, openTestLog } from "../../support/test_log.ts";
import { verifyStorage } from "../../support/verifying.ts";

/** Segment limits that every commit reaches, so that each commit ends a segment. */
const EACH_COMMIT = { events: 1, bytes: Infinity };

/** A log with a pending file of five commits and six events, and a tail with one more event. */
async function pendingAndTail(): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"], [], ["c", "d"], ["e"], ["f"]]));
  await rotateOnly(storage);
  await appendTo(storage, "g");
  return storage;
}

const ALL = ["a", "b", "c", "d", "e", "f", "g"];

test("seal() stopped within a pending file leaves the whole file for the next run", async () => {
  for (const stopAt of [1, 2, 3, 5]) {
    const storage = await pendingAndTail();
    const { log } = await openTestLog(storage);
    let commits = 0;
    const settings = { bounds: EACH_COMMIT, ...stopping(() => ++commits >= stopAt) };
    await assert.rejects(log.seal(() => assert.fail("nothing is sealed"), settings), /stopped/);
    await log.close();
    assert.equal(storage.openFiles, 0);
    assert.equal(pendingPaths(storage.tree()).length, 2);
    const { report, failure } = await verifyStorage(storage, { chain: true });
    assert.equal(failure, null, failure?.message);
    assert.deepEqual([report.pending_checked, report.events_checked], [2, 7]);
    // The segments written so far become orphans.
    assert.equal(report.orphans.length, stopAt - 1);
    assert.deepEqual(await batchIdsOf(storage), ALL);
    assert.deepEqual((await sealAll(storage, EACH_COMMIT)).map(({ events }) => events), [
      ...[1, 1, 2, 1, 1],
      1,
    ]);
    assert.deepEqual(await batchIdsOf(storage), ALL);
    assert.deepEqual((await verifyStorage(storage)).report.orphans, []);
  }
});

test("seal() has sealed everything if it is stopped after its last file", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"]]));
  const { log } = await openTestLog(storage);
  let segments = 0;
  await log.seal(() => void (segments += 1), stopping(() => segments === 1));
  assert.equal(segments, 1);
  await log.close();
  assert.deepEqual(pendingPaths(storage.tree()), []);
});
