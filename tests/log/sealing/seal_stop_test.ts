/**
 * Sealings that are stopped: the pending files sealed before stay sealed, and all of the one at
 * hand is sealed by the next one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { pendingPaths } from "../../support/forged_log.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { rotateOnly, sealAll, sealOldest } from "../../support/sealing.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { logTree, openTestLog, readAll } from "../../support/test_log.ts";
import { verifyStorage } from "../../support/verifying.ts";

/** Ends a segment with every commit. */
const EACH_COMMIT = { events: 1, bytes: Infinity };

/** A pending file of five commits and six events, and a tail of one more. */
async function pendingAndTail(): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"], [], ["c", "d"], ["e"], ["f"]]));
  await rotateOnly(storage);
  const { log } = await openTestLog(storage);
  await log.append([preparedBatch("g")]);
  await log.close();
  return storage;
}

async function batchIdsOf(storage: SimulatedDisk): Promise<string[]> {
  const { log, reports } = await openTestLog(storage);
  const events = await readAll(log.snapshot);
  await log.close();
  assert.deepEqual(reports, []);
  return events.map(({ batch_id }) => batch_id);
}

const ALL = ["a", "b", "c", "d", "e", "f", "g"];

test("seal() that is stopped within a pending file leaves all of that to the next one", async () => {
  for (const stopAt of [1, 2, 3, 5]) {
    const storage = await pendingAndTail();
    const { log } = await openTestLog(storage);
    let commits = 0;
    const settings = { bounds: EACH_COMMIT, isStopped: () => ++commits >= stopAt };
    assert.ok(!(await log.seal(() => assert.fail("nothing is sealed"), settings)));
    await log.close();
    assert.equal(storage.openFiles, 0);
    assert.equal(pendingPaths(storage.tree()).length, 2);
    const { report, failure } = await verifyStorage(storage, { chain: true });
    assert.equal(failure, null, failure?.message);
    assert.deepEqual([report.pending_checked, report.events_checked], [2, 7]);
    // The segments that were made so far are orphans.
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

test("seal() that is stopped at the end of a pending file leaves the next one", async () => {
  const storage = await pendingAndTail();
  assert.equal((await sealOldest(storage)).length, 2);
  assert.equal(pendingPaths(storage.tree()).length, 1);
  assert.deepEqual(await batchIdsOf(storage), ALL);
  assert.deepEqual((await sealAll(storage)).map(({ events }) => events), [1]);
  assert.deepEqual(await batchIdsOf(storage), ALL);
});

test("seal() that is stopped when nothing is left has sealed all", async () => {
  const storage = new SimulatedDisk(await logTree([["a"], ["b"]]));
  const { log } = await openTestLog(storage);
  let segments = 0;
  const isStopped = () => segments === 1;
  assert.ok(await log.seal(() => void (segments += 1), { isStopped }));
  await log.close();
  assert.deepEqual(pendingPaths(storage.tree()), []);
});
