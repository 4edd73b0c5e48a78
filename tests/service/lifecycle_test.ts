/** Retirements and batches that wait for each other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { OpenLog } from "../support/open_log.ts";
import { statusOf } from "../support/outcome.ts";
import { gateAt } from "../support/storage_faults.ts";
import { submittedBatch } from "../support/submitted.ts";

test("retire() and batches in one turn are processed in order of arrival", async () => {
  const log = await OpenLog.open();
  const [unknown, first, retired, late, again] = await Promise.all([
    log.retire("shop"),
    log.submit(submittedBatch("shop", "1")),
    log.retire("shop"),
    log.submit(submittedBatch("shop", "2")),
    log.retire("shop"),
  ]);
  assert.equal(statusOf(unknown!), "source_not_found");
  assert.equal(statusOf(first!), "committed");
  assert.equal(statusOf(retired!), "retired");
  assert.equal(retired!.body.final_frontier, first!.body.last_event_id);
  assert.equal(statusOf(late!), "source_retired");
  assert.deepEqual(again!.body, { ...retired!.body, status: "already_retired" });
  assert.equal((await log.events()).length, 2);
  await log.service.close();
});

test("retire() holds back only batches of its source", async () => {
  const log = await OpenLog.open();
  await log.commit(submittedBatch("shop", "1"));
  await log.commit(submittedBatch("crm", "1"));
  const outcomes = await Promise.all([
    log.submit(submittedBatch("shop", "2")),
    log.retire("crm"),
    log.retire("shop"), // Waits for batch 2.
    log.submit(submittedBatch("shop", "3")), // Waits for the retirement, which waits.
    log.submit(submittedBatch("crm", "4")),
    log.submit(submittedBatch("erp", "5")),
  ]);
  assert.deepEqual(outcomes.map(statusOf), [
    "committed",
    "retired",
    "retired",
    "source_retired",
    "source_retired",
    "committed",
  ]);
  const batchIds = (await log.events()).map(({ batch_id }) => batch_id.split("/").slice(0, 3));
  const retirements = [["service", "retire", "crm"], ["service", "retire", "shop"]];
  const expected = [["1"], ["1"], ["2"], retirements[0], ["5"], retirements[1]];
  assert.deepEqual(batchIds, expected);
  await log.service.close();
});

test("retire() waits for the outcome of a pending commit", async () => {
  const log = await OpenLog.open();
  await log.commit(submittedBatch("shop", "1"));
  const gate = gateAt("sync");
  log.storage.hook = gate.hook;
  const appended = log.submit(submittedBatch("shop", "2"));
  await gate.reached;
  const retired = log.retire("shop");
  const late = log.submit(submittedBatch("shop", "3"));
  gate.open();
  assert.equal((await retired).body.final_frontier, (await appended).body.last_event_id);
  assert.equal(statusOf(await late), "source_retired");
  await log.service.close();
});
