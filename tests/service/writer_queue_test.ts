/** The writer's queue on a disk that stalls, fails or fills up. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { PreparedBatch, Receipt } from "../../src/event/types.ts";
import { BATCH_EVENTS_MAX, COMMIT_BATCHES_MAX, COMMIT_BYTES_SOFT_MAX } from "../../src/limits.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { outcomeOf, statusOf } from "../support/outcome.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { replayAll } from "../support/stream_listing.ts";
import { failNth, gateAt, noRoomAfter } from "../support/storage_faults.ts";
import { sealAll } from "../support/sealing.ts";
import {
  commitCount,
  commitOffsets,
  joinPieces,
  openTestLog,
  tailOf,
} from "../support/test_log.ts";
import { openTestService } from "../support/test_service.ts";
import { verifyStorage } from "../support/verifying.ts";

/** The status of a receipt, or the code of the error. */
async function outcome(answer: Promise<Receipt>): Promise<unknown> {
  return statusOf(await outcomeOf(answer));
}

function outcomes(answers: Promise<Receipt>[]): Promise<unknown[]> {
  return Promise.all(answers.map(outcome));
}

function submitAll(service: EventLogService, batches: PreparedBatch[]): Promise<Receipt>[] {
  return batches.map((batch) => service.append(batch));
}

/** The batch ids of all events, in log order. */
async function storedBatchIds(service: EventLogService): Promise<string[]> {
  return (await replayAll(service)).map(({ batch_id }) => batch_id);
}

/** A batch with the id of another batch and different events. */
function conflicting(batchId: string): PreparedBatch {
  return preparedBatch(batchId, { events: [{ payload: "other" }] });
}

test("append() looks batches of one turn up in segments together, and commits in their order", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  for (const id of ["a", "b"]) await log.append([preparedBatch(id)]);
  await log.close();
  await sealAll(storage, { events: 1, bytes: Infinity });
  const { service } = await openTestService(storage);
  const gate = gateAt("read");
  storage.hook = gate.hook;
  const large = { events: [{ payload: "x".repeat(COMMIT_BYTES_SOFT_MAX / 2) }] };
  const answers = submitAll(service, [
    preparedBatch("a"),
    preparedBatch("1", large),
    conflicting("b"),
    preparedBatch("2"),
    conflicting("2"),
    preparedBatch("2"),
    preparedBatch("3", large),
    preparedBatch("a"),
    preparedBatch("4"),
  ]);
  await gate.reached;
  gate.open();
  assert.deepEqual(await outcomes(answers), [
    "duplicate",
    "committed",
    "batch_id_conflict",
    "committed",
    "batch_id_conflict",
    "duplicate",
    "committed",
    "duplicate",
    "committed",
  ]);
  assert.equal(commitCount(storage), 2);
  assert.deepEqual(await storedBatchIds(service), ["a", "b", "1", "2", "3", "4"]);
  await service.close();
});

test("append() shares a commit among many batches that need lookups", async () => {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const sources = Array.from({ length: 200 }, (_, number) => `source-${number}`);
  await log.append(sources.map((source) => preparedBatch("a", { source })));
  await log.close();
  await sealAll(storage);
  const { service } = await openTestService(storage);
  const answers = submitAll(service, sources.map((source) => preparedBatch("b", { source })));
  assert.deepEqual(await outcomes(answers), sources.map(() => "committed"));
  assert.equal(commitCount(storage), 1);
  await service.close();
});

for (const fault of [undefined, { errno: "EIO" }]) {
  const result = fault === undefined ? "is durable" : "fails";
  test(`append() answers duplicates of an in-flight batch only after it ${result}`, async () => {
    const storage = new SimulatedDisk();
    const { service } = await openTestService(storage);
    const gate = gateAt("sync");
    storage.hook = gate.hook;
    const first = service.append(preparedBatch("a"));
    await gate.reached;
    let answered = 0;
    const repeats = submitAll(service, [preparedBatch("a"), conflicting("a")]);
    for (const repeat of repeats) repeat.then(() => answered++, () => answered++);
    const others = submitAll(service, ["b", "c", "d"].map((batchId) => preparedBatch(batchId)));
    await service.replay({ after: undefined, filter: {}, limitEvents: 1 }).next();
    assert.equal(answered, 0);
    gate.open(fault);
    const expected = fault === undefined
      ? ["committed", "duplicate", "batch_id_conflict", ...Array(3).fill("committed")]
      : Array(6).fill("writer_poisoned");
    assert.deepEqual(await outcomes([first, ...repeats, ...others]), expected);
    if (fault === undefined) assert.equal(commitCount(storage), 2);
  });
}

test("append() reports a full disk at most every ten seconds, with the number of rejections", async (context) => {
  let nowMs = 1_000;
  context.mock.method(performance, "now", () => nowMs);
  const storage = new SimulatedDisk();
  const { service, reports } = await openTestService(storage);
  storage.hook = noRoomAfter(tailOf(storage.tree()).length + 100);
  for (let n = 0; n < 21; n++) {
    assert.equal(await outcome(service.append(preparedBatch(`${n}`))), "storage_full");
    nowMs += 1_000;
  }
  const counts = reports.map((line) =>
    /; free some disk space; requests refused: (\d+)$/.exec(line)?.[1]
  );
  assert.deepEqual(counts, ["1", "10", "10"]);
  // Deno restores no mocks after a test.
  context.mock.restoreAll();
});

test("append() reports why the writer stopped, with advice", async () => {
  const storage = new SimulatedDisk();
  const { service, reports } = await openTestService(storage);
  storage.hook = failNth("write", 1, { errno: "EROFS" });
  assert.equal(await outcome(service.append(preparedBatch("a"))), "writer_poisoned");
  assert.match(reports.join("\n"), /^writer stopped; .*EROFS.*; mount the file system read-write$/);
  storage.hook = null;
  await service.close();
});

test("append() stops the writer when a batch cannot be stamped", async () => {
  const { service, reports } = await openTestService(new SimulatedDisk());
  const batch = preparedBatch("a");
  const broken = { ...batch, events: { ...batch.events, envelopes: null as never } };
  const answers = submitAll(service, [broken, preparedBatch("b")]);
  assert.deepEqual(await outcomes(answers), ["writer_poisoned", "writer_poisoned"]);
  assert.match(reports[0] ?? "", /^writer stopped/);
  await service.close();
});

test("append() commits in submission order, and limits the number of batches in a commit", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const batchIds = Array.from({ length: COMMIT_BATCHES_MAX + 1 }, (_, i) => `b${i}`);
  const batches = batchIds.map((batchId) => preparedBatch(batchId, { events: [{}, {}] }));
  const receipts = await Promise.all(submitAll(service, batches));
  assert.equal(commitCount(storage), 2);
  assert.deepEqual(await storedBatchIds(service), batchIds.flatMap((id) => [id, id]));
  const ids = receipts.flatMap((receipt) => [receipt.first_event_id, receipt.last_event_id]);
  assert.deepEqual(ids, [...ids].sort());
});

test("append() limits the size of a commit unless it has a single batch", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const half = "x".repeat(COMMIT_BYTES_SOFT_MAX / 2 - 10_000);
  const large = "x".repeat(COMMIT_BYTES_SOFT_MAX + 10_000);
  const batches = ["", half, half, large, "", half, half, half].map((payload, number) =>
    preparedBatch(`b${number}`, { events: [{ payload }] })
  );
  await Promise.all(submitAll(service, batches));
  const tail = tailOf(storage.tree());
  const groups = commitOffsets(tail).slice(0, -1).map((offset) => {
    const { commit } = JSON.parse(tail.toString("utf8", offset, tail.indexOf("\n", offset)));
    return commit.batches.map((batch: { batch_id: string }) => batch.batch_id);
  });
  assert.deepEqual(groups, [["b0", "b1", "b2"], ["b3"], ["b4", "b5", "b6"], ["b7"]]);
});

/** A batch that is stamped in slices, between which the event loop runs. */
function manyEvents(batchId: string): PreparedBatch {
  return preparedBatch(batchId, { events: Array.from({ length: BATCH_EVENTS_MAX }, () => ({})) });
}

test("append() yields to the event loop while it stamps large batches, every event of them", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  await service.append(preparedBatch("a"));
  let isDone = false;
  const batches = [manyEvents("b"), preparedBatch("c"), manyEvents("d")];
  const appending = outcomes(submitAll(service, batches)).finally(() => isDone = true);
  let replays = 0;
  for (; !isDone; replays++) {
    const page = service.replay({ after: undefined, filter: {}, limitEvents: 1 });
    assert.match(await joinPieces(page), /"batch_id":"a"/);
    await setImmediate();
  }
  assert.deepEqual(await appending, Array(3).fill("committed"));
  assert.equal(commitCount(storage), 2);
  assert.ok(replays > 1, `${replays} pages were read during the append`);
  await service.close();
  const { report, failure } = await verifyStorage(storage);
  assert.deepEqual([failure, report.events_checked], [null, 2 * BATCH_EVENTS_MAX + 2]);
});

test("close() waits for all submitted batches and accepts no more", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const first = service.append(preparedBatch("a"));
  const gate = gateAt("sync");
  storage.hook = gate.hook;
  await gate.reached;
  const later = submitAll(service, [preparedBatch("b"), preparedBatch("b")]);
  const closed = service.close();
  assert.equal(await outcome(service.append(preparedBatch("late"))), "overloaded");
  gate.open();
  await closed;
  assert.deepEqual(await outcomes([first, ...later]), ["committed", "committed", "duplicate"]);
  assert.equal(storage.openFiles, 0);
  const { service: again } = await openTestService(storage.crash());
  assert.deepEqual(await storedBatchIds(again), ["a", "b"]);
});
