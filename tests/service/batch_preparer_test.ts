/** Batches are prepared on a thread if there is one, and within a memory budget. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import {
  BatchPreparer,
  PREPARED_BYTES_MAX,
  PreparedRoom,
  THREAD_BODY_BYTES_MIN,
} from "../../src/service/batch_preparer.ts";
import type { ThreadPoolOptions } from "../../src/threads/thread_pool.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { openTestService } from "../support/test_service.ts";

const NO_WORKER = new URL("../support/no_such_worker.ts", import.meta.url);
/** Large enough for a thread. */
const PAYLOAD = "x é".repeat(THREAD_BODY_BYTES_MIN / 4);

function bodyOf(batchId: string): Buffer {
  const event = { stream: "s", record_key: "k", kind: "upserted", payload: PAYLOAD };
  return Buffer.from(JSON.stringify({ source: "a", batch_id: batchId, events: [event] }));
}

function preparerFor(context: TestContext, options: Partial<ThreadPoolOptions>): BatchPreparer {
  const preparer = new BatchPreparer(options);
  context.after(() => preparer.close());
  return preparer;
}

const UNABLE: [what: string, start: () => Worker][] = [
  ["cannot be started", () => {
    throw new Error("not allowed");
  }],
  ["ends while starting", () => new Worker(NO_WORKER)],
];
for (const [what, start] of UNABLE) {
  test(`BatchPreparer.prepare() falls back to its own thread when a worker ${what}`, async (t) => {
    const preparer = preparerFor(t, { start });
    const bodies = ["b", "c"].map((id) => preparer.prepare(bodyOf(id)));
    const batches = await Promise.all(bodies);
    assert.deepEqual(batches.map(({ batch }) => batch.batchId), ["b", "c"]);
  });
}

const EMPTY = new Uint8Array(0);
const { lines, envelopes } = preparedBatch("b").events;
/** A budget that two batches exceed, but one does not. */
const LIMIT_BYTES = lines.length + envelopes.length + 1;

/**
 * Regression: every admitted body was prepared at once and queued for the writer in canonical form,
 * which can be 4.4 times as large (for `1e20`). 200 bodies of 4 MiB took 3 GiB and killed a process
 * with less memory.
 */
test("PreparedRoom.prepare() waits while earlier batches use up the memory budget", async () => {
  let prepared = 0;
  const room = new PreparedRoom(() => {
    prepared += 1;
    return preparedBatch("b");
  }, LIMIT_BYTES);
  const [first, second, ...others] = [1, 2, 3, 4].map(() => room.prepare(EMPTY));
  await setImmediate();
  assert.equal(prepared, 2);
  (await second!).release();
  await setImmediate();
  assert.equal(prepared, 3);
  (await first!).release();
  for (const other of others) (await other).release();
  assert.equal(prepared, 4);
});

test("PreparedRoom.prepare() goes on with one body if two batches are released at once", async () => {
  const large = new Uint8Array(LIMIT_BYTES);
  let prepared = 0;
  const prepare = () => Promise.resolve(preparedBatch(`${++prepared}`));
  const room = new PreparedRoom(prepare, LIMIT_BYTES);
  const held = await Promise.all([room.prepare(EMPTY), room.prepare(EMPTY)]);
  const waiting = [room.prepare(large), room.prepare(large)];
  for (const { release } of held) release();
  await Promise.resolve();
  assert.equal(prepared, 3);
  for (const each of waiting) (await each).release();
});

test("PreparedRoom.prepare() continues with the next body after a rejected one", async () => {
  const room = new PreparedRoom((body) => {
    if (body.length > 0) throw new Error("not valid");
    return preparedBatch("b", { events: [{ payload: "x".repeat(200) }] });
  }, LIMIT_BYTES);
  const first = await room.prepare(EMPTY);
  const refused = room.prepare(Uint8Array.of(1));
  const last = room.prepare(EMPTY);
  first.release();
  await assert.rejects(refused, /not valid/);
  (await last).release();
});

test("ingest() releases the memory of a batch whose commit fails", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const body = bodyOf("b");
  storage.hook = ({ kind }) => kind === "write" ? { errno: "ENOSPC" } : null;
  for (let bytes = 0; bytes <= PREPARED_BYTES_MAX; bytes += PAYLOAD.length) {
    await assert.rejects(service.ingest(Buffer.from(body)), /the disk is full/);
  }
  storage.hook = null;
  assert.equal((await service.ingest(body)).status, "committed");
  await service.close();
});
