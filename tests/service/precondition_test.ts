import assert from "node:assert/strict";
import { test } from "node:test";
import { type OpenLog, openLog } from "../support/open_log.ts";
import { type Outcome, statusOf } from "../support/outcome.ts";
import { sealAll } from "../support/sealing.ts";
import { failNth, gateAt } from "../support/storage_faults.ts";
import { commitCount } from "../support/test_log.ts";
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

/** Submits batches in the same turn of the event loop. @returns their outcomes. */
async function inOneTurn(log: OpenLog, batches: SubmittedBatch[]): Promise<Outcome[]> {
  return await Promise.all(batches.map((batch) => log.submit(batch)));
}

test("append() with preconditions on 64 streams of one source shares a commit", async () => {
  const log = await openLog();
  let frontiers: (string | null)[] = Array(64).fill(null);
  for (let round = 1; round <= 3; round++) {
    const batches = frontiers.map((frontier, n) =>
      expecting(`${round}-${n}`, frontier, submittedBatch("shop", `${round}-${n}`, [`s-${n}`]))
    );
    const outcomes = await inOneTurn(log, batches);
    frontiers = outcomes.map(({ body }) => body.last_event_id as string);
    assert.deepEqual(new Set(outcomes.map(statusOf)), new Set(["committed"]));
    assert.equal(commitCount(log.storage), round);
  }
  await log.service.close();
});

test("append() with a precondition waits for a batch that has its stream among others", async () => {
  const log = await openLog();
  const [first, second] = await inOneTurn(log, [
    submittedBatch("shop", "1", ["orders", "returns"]),
    expecting("2", null, submittedBatch("shop", "2", ["returns"])),
  ]);
  assert.equal(statusOf(first!), "committed");
  assert.equal(statusOf(second!), "stream_frontier_conflict");
  await log.service.close();
});

test("append() with a precondition that waits holds back no other batch", async () => {
  const log = await openLog();
  const last = await log.commit(submittedBatch("shop", "0"));
  const outcomes = await inOneTurn(log, [
    submittedBatch("shop", "1"),
    expecting("2", last),
    submittedBatch("shop", "2"), // Depends on the batch with its id, which waits.
    submittedBatch("shop", "3", ["returns"]),
    expecting("4", null, submittedBatch("crm", "4")),
    submittedBatch("shop", "5"),
    submittedBatch("crm", "6"),
  ]);
  const events = await log.events();
  assert.deepEqual(
    events.map(({ source, batch_id }) => `${source} ${batch_id}`),
    ["shop 0", "shop 1", "shop 3", "crm 4", "shop 5", "crm 6", "shop 2"],
  );
  assert.equal(commitCount(log.storage), 3);
  assert.equal(outcomes[1]!.body.actual_frontier, events[4]!.event_id);
  const others = outcomes.filter((_, place) => place !== 1);
  assert.deepEqual(new Set(others.map(statusOf)), new Set(["committed"]));
  await log.service.close();
});

for (const errno of ["ENOSPC", "EIO"]) {
  test(`append() decides what waits by the outcome of a commit: ${errno}`, async () => {
    const log = await openLog();
    const gate = gateAt("write");
    log.storage.hook = gate.hook;
    const answers = inOneTurn(log, [
      submittedBatch("shop", "1"),
      expecting("2", null),
      expecting("3", null),
      submittedBatch("shop", "1"),
      submittedBatch("shop", "4", ["returns"]),
    ]);
    await gate.reached;
    const late = inOneTurn(log, [expecting("5", null), submittedBatch("crm", "6")]);
    gate.open({ errno, writtenBytes: 100 });
    const statuses = [...await answers, ...await late].map(statusOf);
    if (errno === "EIO") {
      assert.deepEqual(statuses, Array(7).fill("writer_poisoned"));
    } else {
      // Batches 1 and 4 shared the commit. Batch 2 is decided first after it, then the repeated 1.
      assert.deepEqual(statuses, [
        "storage_full",
        "committed",
        "stream_frontier_conflict",
        "committed",
        "storage_full",
        "stream_frontier_conflict",
        "committed",
      ]);
      const batchIds = (await log.events()).map(({ batch_id }) => batch_id);
      assert.deepEqual(batchIds, ["2", "1", "6"]);
    }
    await log.service.close();
  });
}

/** A log whose only batch is sealed, and the last event in that batch. */
async function openSealed(): Promise<{ log: OpenLog; last: string }> {
  const before = await openLog();
  const last = await before.commit(submittedBatch("shop", "1"));
  await before.service.close();
  await sealAll(before.storage);
  return { log: await openLog(before.storage), last };
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
  // Both batches wait for the four reads before it, of the footer and the index.
  log.storage.hook = failNth("read", 5, { errno: "EIO" });
  const failed = assert.rejects(log.submit(expecting("2", last)), { code: "EIO" });
  // The index has no such source, so this batch does not read the block of streams that fails.
  const behind = log.submit(submittedBatch("other", "3"));
  await failed;
  assert.equal(statusOf(await behind), "committed");
  assert.equal(statusOf(await log.submit(expecting("2", last))), "committed");
  await log.service.close();
});
