/** Unfinished index files: none remains after a clean stop, nor after the start after a kill. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { IndexMaker } from "../../../src/log/sealing/background_sealing.ts";
import { INDEX_TEMPORARY_FILE } from "../../../src/log/storage/file_names.ts";
import { verifyLog } from "../../../src/log/verify/verify.ts";
import { Gate } from "../../support/gate.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SealingSteps } from "../../support/sealing_steps.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { openTestLog } from "../../support/test_log.ts";

/** A closed log with as many segments as a run has. */
async function sealedLog(): Promise<SimulatedDisk> {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  for (let n = 0; n < 8; n++) await log.append([preparedBatch(`${n}`)]);
  assert.ok(await log.seal(() => {}, { bounds: { events: 1, bytes: Infinity } }));
  await log.close();
  return storage;
}

async function leftoversIn(storage: SimulatedDisk): Promise<string[]> {
  const { report } = await verifyLog(storage, { chain: false });
  assert.ok(report.ok);
  return [...report.orphans, ...report.remnants];
}

/** Opens a log whose merge has written part of an index and does not go on until it is closed. */
async function openMerging(storage: SimulatedDisk) {
  const begun = new Gate();
  const ended = Promise.withResolvers<never>();
  const indexMaker: IndexMaker = {
    async make() {
      const file = await storage.open(INDEX_TEMPORARY_FILE, "create");
      await file.write(Buffer.from("part"), 0);
      await file.close();
      begun.open();
      return await ended.promise;
    },
    close: () => Promise.resolve(ended.reject(new Error("the thread was closed"))),
  };
  const sealing = new SealingSteps().on();
  const { log, reports } = await openTestLog(storage, () => ({ ...sealing(storage), indexMaker }));
  await begun.opened;
  return { log, reports };
}

test("close() during a merge leaves no unfinished index", async () => {
  const storage = await sealedLog();
  const { log, reports } = await openMerging(storage);
  assert.deepEqual(await leftoversIn(storage), [INDEX_TEMPORARY_FILE]);
  await log.close();
  assert.deepEqual(await leftoversIn(storage), []);
  assert.deepEqual(reports, []);
});

test("the start after a kill during a merge removes the unfinished index", async () => {
  const storage = await sealedLog();
  const { log } = await openMerging(storage);
  const killed = new SimulatedDisk(storage.tree());
  await log.close();
  assert.deepEqual(await leftoversIn(killed), [INDEX_TEMPORARY_FILE]);
  const { log: reopened, reports } = await openTestLog(killed);
  assert.deepEqual(await leftoversIn(killed), []);
  await reopened.close();
  assert.deepEqual(reports, []);
});
