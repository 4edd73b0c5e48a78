/** A thread that answers requests: what becomes of them when it fails, dies, rests or is closed. */
import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { RequestThread, ThreadLostError } from "../../src/threads/request_thread.ts";
import type { Order } from "../support/obeying_worker.ts";

const MODULE = new URL("file:///worker.ts");
const OBEYING_MODULE = new URL("../support/obeying_worker.ts", import.meta.url);
const NO_MODULE = new URL("../support/no_such_worker.ts", import.meta.url);

/** A thread that does what the test says. */
class FakeWorker extends EventEmitter {
  readonly posted: unknown[] = [];
  /** Whether no message can be sent to it. */
  isFull = false;

  postMessage(message: unknown): void {
    if (this.isFull) throw new Error("no memory");
    this.posted.push(message);
  }

  terminate(): Promise<number> {
    this.emit("exit", 1);
    return Promise.resolve(1);
  }
}

function threadOf(workers: FakeWorker[], idleMs?: number) {
  let started = 0;
  const start = () => {
    const worker = workers[started++];
    if (worker === undefined) throw new Error("no room");
    return worker as unknown as Worker;
  };
  const idle = idleMs === undefined ? {} : { idleMs };
  return new RequestThread<string, string>(MODULE, { start, ...idle });
}

function workersOf(count: number): FakeWorker[] {
  return Array.from({ length: count }, () => new FakeWorker());
}

/** Has a worker answer a request. */
async function ask(thread: RequestThread<string, string>, worker: FakeWorker): Promise<void> {
  const response = thread.request("question");
  worker.emit("message", { ready: true });
  worker.emit("message", { response: "answer" });
  assert.equal(await response, "answer");
}

test("RequestThread gives responses and failures in the order of the requests", async () => {
  const [worker] = workersOf(1) as [FakeWorker];
  const thread = threadOf([worker]);
  const requests = ["a", "b", "c"].map((message) => thread.request(message));
  assert.ok(!thread.isIdle);
  assert.deepEqual(worker.posted, [], "nothing is sent before it runs");
  worker.emit("message", { ready: true });
  worker.emit("message", { response: "A" });
  worker.emit("message", { failure: "no b" });
  worker.emit("message", { response: "C" });
  const settled = await Promise.allSettled(requests);
  assert.deepEqual(
    settled.map((one) => one.status === "fulfilled" ? one.value : `${one.reason}`),
    ["A", "Error: no b", "C"],
  );
  assert.ok(thread.isIdle);
  assert.deepEqual(worker.posted, ["a", "b", "c"]);
  await thread.close();
});

test("RequestThread fails the requests of a worker that dies, and starts another one", async () => {
  const workers = workersOf(3);
  const thread = threadOf(workers);
  const first = thread.request("1");
  workers[0]!.emit("message", { ready: true });
  workers[0]!.emit("error", new Error("out of memory"));
  workers[0]!.emit("exit", 1);
  await assert.rejects(first, /^ThreadLostError: out of memory$/);
  assert.ok(!thread.isUnavailable, "it ran before");
  const second = thread.request("2");
  workers[0]!.emit("message", { response: "too late" });
  workers[1]!.emit("exit", 1);
  await assert.rejects(second, /^ThreadUnavailableError: the thread ended/);
  assert.ok(thread.isUnavailable, "it never ran");
  const third = thread.request("3");
  await thread.close();
  await assert.rejects(third, /the thread was closed/);
  assert.deepEqual(workers.map(({ posted }) => posted.length), [1, 0, 0]);
  await thread.close();
});

test("RequestThread fails requests when no worker can be started, and once it is closed", async () => {
  const thread = threadOf([]);
  for (let attempt = 0; attempt < 2; attempt++) {
    await assert.rejects(thread.request("1"), /the thread could not be started: no room/);
  }
  assert.ok(thread.isUnavailable);
  await thread.close();
  await assert.rejects(thread.request("1"), ThreadLostError);
});

test("RequestThread goes on with a worker that a request could not be sent to", async () => {
  const [worker] = workersOf(1) as [FakeWorker];
  const thread = threadOf([worker]);
  worker.isFull = true;
  const request = thread.request("1");
  worker.emit("message", { ready: true });
  await assert.rejects(request, /could not be sent: .*no memory/);
  worker.isFull = false;
  await ask(thread, worker);
  await thread.close();
});

for (const isFull of [false, true]) {
  const last = isFull ? "a request that could not be sent" : "its last response";
  test(`RequestThread ends a worker that is idle for long after ${last}`, async () => {
    const workers = workersOf(2);
    const thread = threadOf(workers, 1);
    const ended = new Promise((resolve) => workers[0]!.once("exit", resolve));
    await ask(thread, workers[0]!);
    if (isFull) {
      workers[0]!.isFull = true;
      await assert.rejects(thread.request("2"), ThreadLostError);
    }
    // The idle timer does not keep a process running.
    const running = setInterval(() => {}, 1000);
    await ended;
    clearInterval(running);
    await ask(thread, workers[1]!);
    assert.deepEqual(workers.map(({ posted }) => posted.length), [1, 1]);
    await thread.close();
  });
}

test("RequestThread moves memory to a worker and back", async (t) => {
  const thread = new RequestThread<Order, unknown>(OBEYING_MODULE);
  t.after(() => thread.close());
  const memory = new Uint8Array([1, 2, 3]).buffer;
  const response = await thread.request({ order: "echo", value: memory }, [memory]);
  assert.deepEqual(new Uint8Array(response as ArrayBuffer), new Uint8Array([1, 2, 3]));
  assert.equal(memory.byteLength, 0);
});

test("RequestThread leaves memory where it is when no worker runs", async (t) => {
  const start = () => new Worker(NO_MODULE);
  const thread = new RequestThread<Order, unknown>(OBEYING_MODULE, { start });
  t.after(() => thread.close());
  const memory = new Uint8Array([1, 2, 3]).buffer;
  const request = thread.request({ order: "echo", value: memory }, [memory]);
  await assert.rejects(request, { name: "ThreadUnavailableError" });
  assert.equal(memory.byteLength, 3);
  assert.ok(thread.isUnavailable);
});

test("answerRequests() tells of a response that cannot be sent, and goes on", async (t) => {
  const thread = new RequestThread<Order, unknown>(OBEYING_MODULE);
  t.after(() => thread.close());
  const [first, second] = await Promise.allSettled([
    thread.request({ order: "unclonable", value: "" }),
    thread.request({ order: "echo", value: "a" }),
  ]);
  assert.equal(first.status, "rejected");
  assert.deepEqual(second, { status: "fulfilled", value: "a" });
});
