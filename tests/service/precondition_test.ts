import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, statusOf } from "../support/outcome.ts";
import { RestartableLog, testWithRestart } from "../support/restartable_log.ts";
import { failNth, gateAt } from "../support/storage_faults.ts";
import { openTestLog } from "../support/test_log.ts";
import { type SubmittedBatch, submittedBatch } from "../support/submitted.ts";

/** A batch of one event for `shop/orders` that expects a frontier. */
function expecting(
  batchId: string,
  expectedFrontier: string | null,
  batch: SubmittedBatch = submittedBatch("shop", batchId),
): SubmittedBatch {
  const stream = batch.events[0]!.stream;
  return { ...batch, stream_precondition: { stream, expected_frontier: expectedFrontier } };
}

function conflict(expected: string | null, actual: string | null): Outcome {
  return {
    status: 409,
    body: {
      error: "stream_frontier_conflict",
      source: "shop",
      stream: "orders",
      expected_frontier: expected,
      actual_frontier: actual,
    },
  };
}

/** Submits batches in the same turn of the event loop. @returns their outcomes. */
async function inOneTurn(log: RestartableLog, batches: SubmittedBatch[]): Promise<Outcome[]> {
  return await Promise.all(batches.map((batch) => log.submit(batch)));
}

testWithRestart(
  "append() commits only one of many batches with the same precondition",
  async (log, settle) => {
    for (let round = 0; round < 3; round++) {
      const events = await log.events();
      const frontier = events.at(-1)?.event_id ?? null;
      await settle();
      const ids = ["a", "b", "c", "d"].map((id) => `${id}${round}`);
      const [winner, ...others] = await inOneTurn(log, ids.map((id) => expecting(id, frontier)));
      assert.equal(statusOf(winner!), "committed");
      const actual = winner!.body.last_event_id as string;
      for (const other of others) assert.deepEqual(other, conflict(frontier, actual));
    }
    assert.equal((await log.events()).length, 3);
  },
);

testWithRestart(
  "append() with a precondition sees earlier batches from the same turn",
  async (log, settle) => {
    const last = await log.commit(submittedBatch("shop", "1"));
    await settle();
    const [plain, late, elsewhere] = await inOneTurn(log, [
      submittedBatch("shop", "2"),
      expecting("3", last),
      expecting("4", null, submittedBatch("shop", "4", ["returns"])),
    ]);
    assert.deepEqual(late, conflict(last, plain!.body.last_event_id as string));
    assert.equal(statusOf(elsewhere!), "committed");
  },
);

test("append() with a precondition uses the durable frontier after a commit ran out of space", async () => {
  const log = await RestartableLog.open();
  log.storage.hook = failNth("write", 1, { errno: "ENOSPC", writtenBytes: 100 });
  const outcomes = await inOneTurn(log, [submittedBatch("shop", "1"), expecting("2", null)]);
  assert.deepEqual(outcomes.map(statusOf), ["storage_full", "committed"]);
  assert.equal((await log.events()).length, 1);
  await log.service.close();
});

test("append() with a precondition fails after a commit with an unknown outcome", async () => {
  const log = await RestartableLog.open();
  log.storage.hook = failNth("sync", 1, { errno: "EIO" });
  const outcomes = await inOneTurn(log, [submittedBatch("shop", "1"), expecting("2", null)]);
  assert.deepEqual(outcomes.map(statusOf), ["writer_poisoned", "writer_poisoned"]);
  await log.service.close();
});

/** A log whose only batch is sealed, and the last event in that batch. */
async function openSealed(): Promise<{ log: RestartableLog; last: string }> {
  const before = await RestartableLog.open();
  const last = await before.commit(submittedBatch("shop", "1"));
  await before.service.close();
  const { log } = await openTestLog(before.storage);
  await log.seal(() => {});
  await log.close();
  return { log: await RestartableLog.open(before.storage), last };
}

test("append() with a precondition waits for a segment read, as do later batches", async () => {
  const { log, last } = await openSealed();
  const gate = gateAt("read");
  log.storage.hook = gate.hook;
  const outcomes = inOneTurn(log, [expecting("2", last), expecting("3", last)]);
  await gate.reached;
  const behind = log.submit(submittedBatch("shop", "4"));
  gate.open();
  assert.deepEqual((await outcomes).map(statusOf), ["committed", "stream_frontier_conflict"]);
  assert.equal(statusOf(await behind), "committed");
  assert.deepEqual((await log.events()).map((event) => event.batch_id), ["1", "2", "4"]);
  await log.service.close();
});

test("append() with a precondition is the only batch to fail when a segment is unreadable", async () => {
  const { log, last } = await openSealed();
  log.storage.hook = failNth("read", 1, { errno: "EIO" });
  const failed = assert.rejects(log.submit(expecting("2", last)), { code: "EIO" });
  const behind = log.submit(submittedBatch("shop", "3", ["returns"]));
  await failed;
  assert.equal(statusOf(await behind), "committed");
  assert.equal(statusOf(await log.submit(expecting("2", last))), "committed");
  await log.service.close();
});
