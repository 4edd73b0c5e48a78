/** A service whose old batches are known only from the indexes of runs of segments. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { INDEX_FOLDER } from "../../src/log/storage/file_names.ts";
import { statusOf } from "../support/outcome.ts";
import { SealingSteps, untilQuiet } from "../support/sealing_steps.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { submit, submittedBatch } from "../support/submitted.ts";
import { openTestService } from "../support/test_service.ts";
import { verifyStorage } from "../support/verifying.ts";

/** Commits that are sealed, each into a segment of its own, and merged while they are served. */
const BATCHES = 70;

test("a batch whose only trace is in a merged index is a duplicate, also after restarts", async () => {
  let storage = new SimulatedDisk();
  const steps = new SealingSteps({ bounds: { events: 1, bytes: 1 } });
  let { service, reports } = await openTestService(storage, steps.on());
  const send = async (n: number) => {
    const answer = await submit(service, submittedBatch(`source-${n % 3}`, `batch-${n}`));
    return statusOf(answer);
  };
  for (let n = 0; n < BATCHES; n++) {
    assert.equal(await send(n), "committed");
    await untilQuiet(storage);
  }
  const indexes = (tree = storage.tree()) =>
    [...tree.keys()].filter((path) => path.startsWith("index/"));
  assert.deepEqual(indexes().map((path) => path.slice(0, 8)), ["index/2_"]);
  const durable = indexes(storage.crash().tree());
  assert.ok(indexes().every((path) => durable.includes(path)), "its name is durable");
  for (const restarts of [0, 1, 2]) {
    for (let n = 0; n < BATCHES; n++) assert.equal(await send(n), "duplicate");
    assert.deepEqual(reports, []);
    await service.close();
    const { report } = await verifyStorage(storage);
    assert.deepEqual([report.ok, report.events_checked], [true, BATCHES]);
    // The second restart finds no index and makes all of them again.
    const tree = storage.crash().tree();
    for (const path of restarts === 1 ? indexes() : []) tree.delete(path);
    storage = new SimulatedDisk(tree);
    ({ service, reports } = await openTestService(storage, steps.on()));
  }
  await untilQuiet(storage);
  assert.equal(indexes().length, 1);
  assert.ok(storage.tree().has(INDEX_FOLDER));
  await service.close();
});
