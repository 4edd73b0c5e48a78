import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { ApiError } from "../../src/event/api_error.ts";
import { prepareBatch } from "../../src/event/batch.ts";
import { BatchPreparer, THREAD_BODY_BYTES_MIN } from "../../src/service/batch_preparer.ts";
import type { ThreadPoolOptions } from "../../src/threads/thread_pool.ts";

const NO_WORKER = new URL("../support/no_such_worker.ts", import.meta.url);

function bodyOf(batchId: string, events: number, payload: unknown = "x".repeat(300)): Buffer {
  const event = { stream: "s", record_key: "k é", kind: "upserted", payload };
  const batch = { source: "a", batch_id: batchId, events: Array(events).fill(event) };
  return Buffer.from(JSON.stringify(batch));
}

const LARGE = 200;
assert(bodyOf("b", LARGE).length >= THREAD_BODY_BYTES_MIN);

function preparerFor(
  context: TestContext,
  options: Partial<ThreadPoolOptions> = {},
): BatchPreparer {
  const preparer = new BatchPreparer(options);
  context.after(() => preparer.close());
  return preparer;
}

test("BatchPreparer.prepare() fails with the same messages as prepareBatch()", async (t) => {
  const preparer = preparerFor(t);
  const bodies = [
    Buffer.alloc(THREAD_BODY_BYTES_MIN, "{"),
    bodyOf("service/b", LARGE),
    bodyOf("b", 10_001),
    Buffer.from(bodyOf("b", LARGE).toString().replace('"kind"', '"kin"')),
  ];
  for (const body of bodies) {
    const expected = refusalOf(() => prepareBatch(Buffer.from(body)));
    await assert.rejects(async () => await preparer.prepare(body), (error) => {
      assert.ok(error instanceof ApiError);
      assert.deepEqual(
        refusalOf(() => {
          throw error;
        }),
        expected,
      );
      return true;
    });
  }
});

function refusalOf(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    assert.ok(error instanceof ApiError);
    const { code, message, context } = error;
    return { code, message, context };
  }
  throw new Error("the body was not rejected");
}

test("BatchPreparer.prepare() leaves the rest of a body's buffer intact", async (t) => {
  const preparer = preparerFor(t);
  const body = bodyOf("b", LARGE);
  const memory = Buffer.concat([Buffer.from("before"), body, Buffer.from("after")]);
  await preparer.prepare(memory.subarray(6, -5));
  assert.equal(memory.toString(), `before${body}after`);
});

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
    assert.deepEqual(batches.map(({ batchId }) => batchId), ["b", "c"]);
  });
}
