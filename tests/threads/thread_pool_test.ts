/** Threads that respond to requests, even after one of them fails, dies, idles or is closed. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { ThreadPool } from "../../src/threads/thread_pool.ts";
import type { Order } from "../support/obeying_worker.ts";

const MODULE = new URL("../support/obeying_worker.ts", import.meta.url);
const NO_MODULE = new URL("../support/no_such_worker.ts", import.meta.url);

function poolFor(context: TestContext, threadsMax = 1, module = MODULE) {
  const started: Worker[] = [];
  const start = () => (started.push(new Worker(module)), started.at(-1)!);
  const pool = new ThreadPool<Order, unknown>(MODULE, { threadsMax, start });
  context.after(() => pool.close());
  return { pool, started };
}

const echo = (value: string | ArrayBuffer): Order => ({ order: "echo", value });

/** A worker controlled by the test. */
class FakeWorker extends EventEmitter {
  isReferenced = true;
  readonly posted: unknown[] = [];
  /** Whether sending this worker a message fails. */
  isFull = false;
  #isRunning = false;

  /** Sends that it runs, unless it has, and waits until it has got the request. */
  async run(): Promise<void> {
    if (!this.#isRunning) this.emit("message", { ready: true });
    this.#isRunning = true;
    await setImmediate();
  }

  postMessage(message: unknown): void {
    if (this.isFull) throw new Error("no memory");
    this.posted.push(message);
  }

  ref(): void {
    this.isReferenced = true;
  }

  unref(): void {
    this.isReferenced = false;
  }

  terminate(): Promise<number> {
    this.emit("exit", 1);
    return Promise.resolve(1);
  }
}

/** A pool with one thread that uses these workers one after another. */
function fakePool(count: number, options: { idleMs?: number } = {}) {
  const workers = Array.from({ length: count }, () => new FakeWorker());
  let started = 0;
  const start = () => {
    const worker = workers[started++];
    if (worker === undefined) throw new Error("no memory");
    return worker as unknown as Worker;
  };
  const pool = new ThreadPool<string, string>(MODULE, { threadsMax: 1, start, ...options });
  return { pool, workers };
}

/** Sends a request and lets a worker respond. */
async function ask(pool: ThreadPool<string, string>, worker: FakeWorker): Promise<void> {
  const response = pool.request("question");
  await worker.run();
  worker.emit("message", { response: "answer" });
  assert.equal(await response, "answer");
}

test("ThreadPool.request() starts threads up to its limit and answers every request", async (t) => {
  const { pool, started } = poolFor(t, 2);
  for (const value of ["a", "b", "c"]) assert.equal(await pool.request(echo(value)), value);
  assert.equal(started.length, 1, "another thread is idle");
  const values = Array.from({ length: 12 }, (_, number) => `${number}`);
  assert.deepEqual(await Promise.all(values.map((value) => pool.request(echo(value)))), values);
  assert.equal(started.length, 2);
});

test("ThreadPool.request() fails only requests that make a thread fail or die", async (t) => {
  const { pool, started } = poolFor(t);
  const answers = await Promise.allSettled([
    pool.request(echo("a")),
    pool.request({ order: "die", value: "a bug" }),
    pool.request(echo("b")),
    pool.request({ order: "fail", value: "a fault" }),
    pool.request({ order: "unclonable", value: "" }),
    pool.request(echo("c")),
  ]);
  assert.deepEqual(answers.map(({ status }) => status), [
    ...["fulfilled", "rejected", "fulfilled", "rejected", "rejected", "fulfilled"],
  ]);
  assert.equal(started.length, 2);
});

test("ThreadPool fails the request of a worker that dies, and replaces the worker", async () => {
  const { pool, workers } = fakePool(3);
  const first = pool.request("1");
  assert.deepEqual(workers[0]!.posted, [], "nothing is sent before the worker is ready");
  await workers[0]!.run();
  workers[0]!.emit("error", new Error("out of memory"));
  workers[0]!.emit("exit", 1);
  await assert.rejects(first, /^Error: out of memory$/);
  const second = pool.request("2");
  workers[0]!.emit("message", { response: "too late" });
  workers[1]!.emit("exit", 1);
  await assert.rejects(second, /^ThreadUnavailableError: the thread ended/);
  const third = pool.request("3");
  await pool.close();
  await assert.rejects(third, /the thread was closed/);
  assert.deepEqual(workers.map(({ posted }) => posted.length), [1, 0, 0]);
  await pool.close();
});

test("ThreadPool starts a worker after others could not be started, and none once it is closed", async () => {
  const worker = new FakeWorker();
  let starts = 0;
  const start = () => {
    if (starts++ < 2) throw new Error("no memory");
    return worker as unknown as Worker;
  };
  const pool = new ThreadPool<string, string>(MODULE, { threadsMax: 1, start });
  for (const request of ["1", "2"].map((message) => pool.request(message))) {
    await assert.rejects(request, /^ThreadUnavailableError: .*could not be started: no memory$/);
  }
  await ask(pool, worker);
  await ask(pool, worker);
  await pool.close();
  await assert.rejects(pool.request("1"), /^Error: the thread was closed$/);
  assert.equal(starts, 3);
});

test("ThreadPool reuses a worker after a request could not be sent to it", async () => {
  const { pool, workers: [worker] } = fakePool(1);
  worker!.isFull = true;
  const request = pool.request("1");
  await Promise.all([worker!.run(), assert.rejects(request, /could not be sent: .*no memory/)]);
  worker!.isFull = false;
  await ask(pool, worker!);
  await pool.close();
});

test("ThreadPool terminates an idle worker, whatever the outcome of its last request", async () => {
  for (const isFull of [false, true]) {
    const { pool, workers } = fakePool(2, { idleMs: 1 });
    const ended = new Promise((resolve) => workers[0]!.once("exit", resolve));
    await ask(pool, workers[0]!);
    if (isFull) {
      workers[0]!.isFull = true;
      await assert.rejects(pool.request("2"), /^Error: the request could not be sent/);
    }
    // The idle timer does not keep the process alive.
    const running = setInterval(() => {}, 1000);
    await ended;
    clearInterval(running);
    await ask(pool, workers[1]!);
    assert.deepEqual(workers.map(({ posted }) => posted.length), [1, 1]);
    await pool.close();
  }
});

test("ThreadPool keeps the process running only while a thread works", async () => {
  const { pool, workers: [worker] } = fakePool(1);
  await ask(pool, worker!);
  assert.ok(!worker!.isReferenced);
  const response = pool.request("2");
  assert.ok(worker!.isReferenced);
  worker!.emit("message", { response: "answer" });
  await response;
  assert.ok(!worker!.isReferenced);
});

test("ThreadPool transfers memory to a running worker and back", async (t) => {
  const memory = new Uint8Array([1, 2, 3]).buffer;
  const { pool: unavailable } = poolFor(t, 1, NO_MODULE);
  const request = unavailable.request(echo(memory), [memory]);
  await assert.rejects(request, { name: "ThreadUnavailableError" });
  assert.equal(memory.byteLength, 3);
  const response = await poolFor(t).pool.request(echo(memory), [memory]);
  assert.deepEqual(new Uint8Array(response as ArrayBuffer), new Uint8Array([1, 2, 3]));
  assert.equal(memory.byteLength, 0);
});
