import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { ApiError } from "../../src/event/api_error.ts";
import { prepareBatch } from "../../src/event/batch.ts";
import { BufferPool, POOLED_BYTES_MAX } from "../../src/event/buffer_pool.ts";
import { fillAll } from "../../src/log/wal/filled_batch.ts";
import {
  BATCH_THREAD_BODY_BYTES_MIN,
  BatchThreads,
  type BatchThreadsOptions,
} from "../../src/service/batch_threads.ts";

const WORKER = new URL("../../src/service/batch_worker.ts", import.meta.url);
const DYING_WORKER = new URL("../support/dying_worker.ts", import.meta.url);
const NO_WORKER = new URL("../support/no_such_worker.ts", import.meta.url);

function bodyOf(batchId: string, events: number, payload: unknown = "x".repeat(300)): Buffer {
  const event = { stream: "s", record_key: "k é", kind: "upserted", payload };
  const batch = { source: "a", batch_id: batchId, events: Array(events).fill(event) };
  return Buffer.from(JSON.stringify(batch));
}

const LARGE = 200;
assert(bodyOf("b", LARGE).length >= BATCH_THREAD_BODY_BYTES_MIN);

function threadsFor(context: TestContext, options: BatchThreadsOptions = {}): BatchThreads {
  const threads = new BatchThreads(options);
  context.after(() => threads.close());
  return threads;
}

test("BatchThreads.prepare() gives what prepareBatch() gives", async (t) => {
  const threads = threadsFor(t);
  for (const events of [1, LARGE, 10_000]) {
    const expected = prepareBatch(bodyOf("b", events));
    assert.deepEqual(await threads.prepare(bodyOf("b", events)), expected);
  }
});

test("BatchThreads.prepare() prepares a small body at once, a large one elsewhere", async (t) => {
  const threads = threadsFor(t);
  assert.ok(!(threads.prepare(bodyOf("b", 1)) instanceof Promise));
  const large = threads.prepare(bodyOf("b", LARGE));
  assert.ok(large instanceof Promise);
  await large;
});

test("BatchThreads.prepare() refuses what prepareBatch() refuses, in the same words", async (t) => {
  const threads = threadsFor(t);
  const bodies = [
    Buffer.alloc(BATCH_THREAD_BODY_BYTES_MIN, "{"),
    bodyOf("service/b", LARGE),
    bodyOf("b", 10_001),
    Buffer.from(bodyOf("b", LARGE).toString().replace('"kind"', '"kin"')),
  ];
  for (const body of bodies) {
    const expected = refusalOf(() => prepareBatch(Buffer.from(body)));
    await assert.rejects(async () => await threads.prepare(body), (error) => {
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
  throw new Error("it was not refused");
}

test("BatchThreads.prepare() leaves what else is in the memory of a body", async (t) => {
  const threads = threadsFor(t);
  const body = bodyOf("b", LARGE);
  const memory = Buffer.concat([Buffer.from("before"), body, Buffer.from("after")]);
  await threads.prepare(memory.subarray(6, -5));
  assert.equal(memory.toString(), `before${body}after`);
});

test("BatchThreads starts no more threads than it may, and each body gets its answer", async (t) => {
  let started = 0;
  const start = () => (started += 1, new Worker(WORKER));
  const threads = threadsFor(t, { start, threadsMax: 2 });
  const ids = Array.from({ length: 12 }, (_, number) => `b${number}`);
  const batches = await Promise.all(ids.map((id) => threads.prepare(bodyOf(id, LARGE))));
  assert.deepEqual(batches.map(({ batchId }) => batchId), ids);
  assert.equal(started, 2);
  await threads.prepare(bodyOf("again", LARGE));
  assert.equal(started, 2);
});

const UNABLE: [what: string, start: () => Worker][] = [
  ["cannot be started", () => {
    throw new Error("not allowed");
  }],
  ["ends before it is there", () => new Worker(NO_WORKER)],
];
for (const [what, start] of UNABLE) {
  test(`BatchThreads.prepare() does the work itself when a thread ${what}`, async (t) => {
    let started = 0;
    const threads = threadsFor(t, { start: () => (started += 1, start()) });
    const bodies = ["b", "c"].map((id) => threads.prepare(bodyOf(id, LARGE)));
    const batches = await Promise.all(bodies);
    assert.deepEqual(batches.map(({ batchId }) => batchId), ["b", "c"]);
    const tried = started;
    assert.equal((await threads.prepare(bodyOf("d", LARGE))).batchId, "d");
    assert.equal(started, tried, "it is not tried again");
  });
}

test("BatchThreads.prepare() rejects the body that a thread died of, and takes the next", async (t) => {
  let started = 0;
  const start = () => new Worker(++started === 1 ? DYING_WORKER : WORKER);
  const threads = threadsFor(t, { start });
  await assert.rejects(async () => await threads.prepare(bodyOf("b", LARGE)), (error) => {
    assert.ok(error instanceof Error && !(error instanceof ApiError));
    return /no thread could prepare a body/.test(error.message);
  });
  assert.equal((await threads.prepare(bodyOf("c", LARGE))).batchId, "c");
  assert.equal(started, 2);
});

const VALUES = (events: number) => ({
  eventIds: Array.from(
    { length: events },
    (_, place) => `01234567-0123-7123-8123-${`${place}`.padStart(12, "0")}`,
  ),
  observedAt: "2026-01-31T12:34:56.789Z",
});

for (const [what, start] of [["elsewhere", undefined], ["itself", UNABLE[0]![1]]] as const) {
  test(`BatchThreads.fill() fills what prepare() gives as fillAll() does, ${what}`, async (t) => {
    const threads = threadsFor(t, start === undefined ? {} : { start });
    for (const events of [LARGE, 10_000]) {
      const body = bodyOf("b", events);
      const expected = prepareBatch(body);
      const hashes = fillAll(expected.events, VALUES(events));
      const batch = await threads.prepare(body);
      const linesBefore = batch.events.lines;
      const filling = threads.fill(batch.events, VALUES(events));
      if (start === undefined) assert.equal(linesBefore.length, 0, "its memory has moved");
      assert.equal(await filling, hashes);
      assert.deepEqual(batch, expected);
    }
  });
}

test("BatchThreads.fill() leaves memory that others may be in where it is", async (t) => {
  const threads = threadsFor(t);
  const batch = prepareBatch(bodyOf("b", LARGE));
  const { lines } = batch.events;
  batch.events.lines = Buffer.alloc(lines.length + 1).subarray(1);
  lines.copy(batch.events.lines);
  const { buffer } = batch.events.lines;
  const expected = prepareBatch(bodyOf("b", LARGE));
  const hashes = fillAll(expected.events, VALUES(LARGE));
  assert.equal(await threads.fill(batch.events, VALUES(LARGE)), hashes);
  assert.equal(batch.events.lines.buffer, buffer);
  assert.deepEqual(batch, expected);
});

test("BatchThreads.fill() comes before bodies that wait", async (t) => {
  const threads = threadsFor(t, { threadsMax: 2 });
  const batch = await threads.prepare(bodyOf("b", LARGE));
  const done: string[] = [];
  const bodies = Array.from(
    { length: 8 },
    async (_, number) => done.push((await threads.prepare(bodyOf(`b${number}`, 5000))).batchId),
  );
  await Promise.all([
    ...bodies,
    threads.fill(batch.events, VALUES(LARGE)).then(() => done.push("filled")),
  ]);
  assert.ok(done.indexOf("filled") < 4, done.join());
});

test("BatchThreads.fill() tells that a batch is lost when its thread dies", async (t) => {
  const memory = new BufferPool();
  const batch = await threadsFor(t).prepare(bodyOf("b", LARGE));
  for (const text of [batch.events.lines, batch.events.envelopes]) memory.adopt(text);
  const threads = threadsFor(t, { memory, start: () => new Worker(DYING_WORKER) });
  await assert.rejects(threads.fill(batch.events, VALUES(LARGE)), { name: "LostBatchError" });
});

/** A pool of which a test says what it gives, and which notes what it is asked for. */
class WatchedPool extends BufferPool {
  readonly asked: number[] = [];
  failure: Error | null = null;

  override take(sizeBytes: number): ArrayBuffer {
    this.asked.push(sizeBytes);
    if (this.failure !== null) throw this.failure;
    return super.take(sizeBytes);
  }
}

test("BatchThreads.prepare() goes on after a body that there was no memory for", async (t) => {
  const memory = new WatchedPool();
  const threads = threadsFor(t, { memory, threadsMax: 1 });
  await threads.prepare(bodyOf("b", 10_000));
  memory.failure = new RangeError("Array buffer allocation failed");
  const bodies = ["c", "d"].map((id) => threads.prepare(bodyOf(id, 10_000)));
  for (const body of bodies) await assert.rejects(async () => await body, /allocation failed/);
  memory.failure = null;
  assert.deepEqual(
    await threads.prepare(bodyOf("e", LARGE)),
    prepareBatch(bodyOf("e", LARGE)),
  );
});

test("BatchThreads.prepare() asks for no more memory than the pool would take back", async (t) => {
  const memory = new WatchedPool();
  const threads = threadsFor(t, { memory, threadsMax: 1 });
  const event = { stream: "s", record_key: "k", kind: "c", payload: 0 };
  const batch = { source: "a", batch_id: "\u0001".repeat(256), events: Array(10_000).fill(event) };
  const { events } = await threads.prepare(Buffer.from(JSON.stringify(batch)));
  assert.ok(events.lines.length > 10 * JSON.stringify(batch).length, "its lines are much longer");
  await threads.prepare(bodyOf("b", 1, "x".repeat(20 * 1024 * 1024)));
  for (const sizeBytes of memory.asked) {
    assert.ok(sizeBytes <= POOLED_BYTES_MAX / 2, `${sizeBytes}`);
  }
});
