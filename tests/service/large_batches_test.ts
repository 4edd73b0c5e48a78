/** Large batches, which are filled while others are committed, and what overtakes them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ApiError } from "../../src/event/api_error.ts";
import type { PreparedBatch } from "../../src/event/types.ts";
import { BATCH_EVENTS_MAX } from "../../src/limits.ts";
import { type EventFiller, fillInTurns } from "../../src/log/wal/filled_batch.ts";
import { LostBatchError } from "../../src/log/storage/errors.ts";
import type { EventLogService } from "../../src/service/event_log_service.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { failNth, gateAt, noRoomAfter } from "../support/storage_faults.ts";
import { tailOf, testTime } from "../support/test_log.ts";
import { openTestService } from "../support/test_service.ts";
import { verifyStorage } from "../support/verifying.ts";
import { openWatchedService } from "../support/watched_log.ts";

const LARGE_EVENTS = 2;

async function open() {
  const storage = new SimulatedDisk();
  return {
    storage,
    ...await openTestService(storage, undefined, undefined, LARGE_EVENTS),
  };
}

function large(batchId: string, events = LARGE_EVENTS): PreparedBatch {
  return preparedBatch(batchId, { events: Array.from({ length: events }, () => ({})) });
}

const small = (batchId: string) => preparedBatch(batchId);

/** What each came to, in the order of submission. */
function outcomes(answers: Promise<{ status: string }>[]): Promise<string[]> {
  return Promise.all(answers.map(async (answer) => {
    try {
      return (await answer).status;
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      return error.code;
    }
  }));
}

function submitAll(service: EventLogService, batches: PreparedBatch[]) {
  return batches.map((batch) => service.append(batch));
}

/** The batch ids of each commit. */
function commits(storage: SimulatedDisk): string[][] {
  return tailOf(storage.tree()).toString().split("\n")
    .filter((line) => line.startsWith('{"commit":'))
    .map((line) => JSON.parse(line).commit.batches)
    .map((batches) => batches.map((batch: { batch_id: string }) => batch.batch_id));
}

test("append() lets others overtake a large batch, which has a commit of its own", async () => {
  const { storage, service } = await open();
  const batches = [large("a"), small("b"), large("c"), small("d")];
  assert.deepEqual(await outcomes(submitAll(service, batches)), Array(4).fill("committed"));
  assert.deepEqual(commits(storage), [["b", "d"], ["a"], ["c"]]);
  await service.close();
  assert.equal((await verifyStorage(storage)).failure, null);
});

test("append() lets no more overtake a large batch than what came before it was filled", async () => {
  const { storage, service } = await open();
  const gate = gateAt("sync");
  storage.hook = gate.hook;
  const first = submitAll(service, [large("a"), small("b")]);
  await gate.reached;
  const later = submitAll(service, [small("c"), large("d")]);
  gate.open();
  await Promise.all([...first, ...later]);
  assert.deepEqual(commits(storage), [["b"], ["a"], ["c"], ["d"]]);
});

test("append() takes small batches between the slices of a large one", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  let isDone = false;
  const first = service.append(large("large", BATCH_EVENTS_MAX)).then(() => isDone = true);
  let count = 0;
  for (; !isDone; count++) {
    await Promise.race([service.append(small(`small ${count}`)), first]);
    await setImmediate();
  }
  const order = commits(storage).flat();
  assert.ok(order.indexOf("large") > 1, `committed at place ${order.indexOf("large")}`);
  await service.close();
  assert.equal((await verifyStorage(storage)).failure, null);
});

test("append() decides a large batch by what has overtaken it", async () => {
  const { storage, service } = await open();
  const condition = { stream: "orders", expectedFrontier: null };
  const answers = submitAll(service, [
    { ...large("a"), precondition: condition },
    large("b"),
    large("c"),
    large("c"),
    large("c", LARGE_EVENTS + 1),
    small("b"),
  ]);
  assert.deepEqual(await outcomes(answers), [
    "stream_frontier_conflict",
    "batch_id_conflict",
    "committed",
    "duplicate",
    "batch_id_conflict",
    "committed",
  ]);
  assert.deepEqual(commits(storage), [["b"], ["c"]]);
  const retiring = [service.append(large("d")), service.retire("shop")];
  assert.deepEqual(await outcomes(retiring), ["source_retired", "retired"]);
  const other = preparedBatch("e", { source: "crm", events: [{}, {}] });
  assert.equal((await service.append(other)).status, "committed");
});

test("append() answers storage_full for a large batch without room, and goes on", async () => {
  const { storage, service } = await open();
  await service.append(small("a"));
  const before = storage.tree();
  storage.hook = noRoomAfter(tailOf(before).length + 100);
  const answers = submitAll(service, [large("b"), large("c")]);
  assert.deepEqual(await outcomes(answers), ["storage_full", "storage_full"]);
  assert.deepEqual(storage.tree(), before);
  storage.hook = null;
  assert.deepEqual(await outcomes(submitAll(service, [large("b")])), ["committed"]);
});

for (const kind of ["write", "sync"] as const) {
  for (const [nth, whose] of [[1, "a small"], [2, "a large"]] as const) {
    test(`append() refuses all large batches when ${whose} one's ${kind} fails`, async () => {
      const { storage, service, reports } = await open();
      storage.hook = failNth(kind, nth, { errno: "EIO" });
      const answers = submitAll(service, [large("a"), large("b"), small("c")]);
      const refused = ["writer_poisoned", "writer_poisoned"];
      const last = nth === 1 ? "writer_poisoned" : "committed";
      assert.deepEqual(await outcomes(answers), [...refused, last]);
      assert.deepEqual(await outcomes(submitAll(service, [large("d")])), ["writer_poisoned"]);
      assert.equal(reports.length, 1);
      await service.close();
      assert.equal(storage.openFiles, 0);
    });
  }
}

test("append() stops the writer when a large batch cannot be filled", async () => {
  const { service, reports } = await open();
  const batch = large("a");
  const broken = { ...batch, events: { ...batch.events, envelopes: null as never } };
  const answers = submitAll(service, [broken, large("b")]);
  assert.deepEqual(await outcomes(answers), ["writer_poisoned", "writer_poisoned"]);
  assert.match(reports[0] ?? "", /^writer stopped/);
  await service.close();
});

test("append() rejects a large batch that is lost while it is filled, and goes on", async () => {
  const storage = new SimulatedDisk();
  let fills = 0;
  const fill: EventFiller = (events, values) =>
    ++fills === 2 ? Promise.reject(new LostBatchError("lost")) : fillInTurns(events, values);
  const options = { storage, ...testTime(), report: () => {}, largeBatchEventsMin: LARGE_EVENTS };
  const service = await openWatchedService({ ...options, fill });
  const answers = submitAll(service, [large("a"), large("b"), large("c"), small("d")]);
  await assert.rejects(answers[1]!, { name: "LostBatchError" });
  answers.splice(1, 1);
  assert.deepEqual(await outcomes(answers), ["committed", "committed", "committed"]);
  assert.deepEqual(await outcomes(submitAll(service, [large("b")])), ["committed"]);
  await service.close();
  assert.equal((await verifyStorage(storage)).failure, null);
});

test("close() waits for the outcome of large batches", async () => {
  const { storage, service } = await open();
  const answers = submitAll(service, [large("a"), large("b")]);
  await service.close();
  assert.deepEqual(await outcomes(answers), ["committed", "committed"]);
  assert.deepEqual(commits(storage), [["a"], ["b"], []]);
});
