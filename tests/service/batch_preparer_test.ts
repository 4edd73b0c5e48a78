import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { BatchPreparer, THREAD_BODY_BYTES_MIN } from "../../src/service/batch_preparer.ts";
import type { ThreadPoolOptions } from "../../src/threads/thread_pool.ts";

const NO_WORKER = new URL("../support/no_such_worker.ts", import.meta.url);

function bodyOf(batchId: string, events: number): Buffer {
  const event = { stream: "s", record_key: "k é", kind: "upserted", payload: "x".repeat(300) };
  const batch = { source: "a", batch_id: batchId, events: Array(events).fill(event) };
  return Buffer.from(JSON.stringify(batch));
}

const LARGE = 200;
assert(bodyOf("b", LARGE).length >= THREAD_BODY_BYTES_MIN);

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
    const bodies = ["b", "c"].map((id) => preparer.prepare(bodyOf(id, LARGE)));
    const batches = await Promise.all(bodies);
    assert.deepEqual(batches.map(({ batch }) => batch.batchId), ["b", "c"]);
  });
}

test("BatchPreparer.prepare() uses a worker again after one could not be started", async (t) => {
  const started: Worker[] = [];
  let failures = 1;
  const start = (module: URL) => {
    if (failures-- > 0) throw new Error("no memory");
    started.push(new Worker(module));
    return started.at(-1)!;
  };
  const preparer = preparerFor(t, { start });
  for (const [id, threads] of [["b", 0], ["c", 1], ["d", 1]] as const) {
    const { batch, release } = await preparer.prepare(bodyOf(id, LARGE));
    release();
    assert.deepEqual([batch.batchId, started.length], [id, threads]);
  }
});
