import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { RequestThread, type RequestThreadOptions } from "../../src/threads/request_thread.ts";
import type { Order } from "../support/obeying_worker.ts";

const MODULE = new URL("../support/obeying_worker.ts", import.meta.url);
const NO_MODULE = new URL("../support/no_such_worker.ts", import.meta.url);

type Thread = RequestThread<Order, unknown>;

function threadFor(context: TestContext, options: RequestThreadOptions = {}): Thread {
  const thread: Thread = new RequestThread(MODULE, options);
  context.after(() => thread.close());
  return thread;
}

const echo = (value: string): Order => ({ order: "echo", value });

test("RequestThread.request() answers in order, whatever came before", async (t) => {
  const thread = threadFor(t);
  const answers = await Promise.allSettled([
    thread.request(echo("a")),
    thread.request({ order: "fail", value: "no" }),
    thread.request({ order: "unclonable", value: "" }),
    thread.request(echo("b")),
  ]);
  assert.deepEqual(answers.map(({ status }) => status === "fulfilled"), [true, false, false, true]);
  assert.deepEqual([answers[0], answers[3]].map((answer) => Object.values(answer!)[1]), ["a", "b"]);
  assert.equal((answers[1] as PromiseRejectedResult).reason.message, "no");
  assert.ok(thread.isIdle);
});

test("RequestThread.request() moves memory there and back", async (t) => {
  const thread = threadFor(t);
  const memory = new Uint8Array([1, 2, 3]).buffer;
  const request = thread.request({ order: "echo", value: memory }, [memory]);
  assert.deepEqual(new Uint8Array(await request as ArrayBuffer), new Uint8Array([1, 2, 3]));
  assert.equal(memory.byteLength, 0);
});

test("RequestThread.request() rejects what cannot be sent, and goes on", async (t) => {
  const thread = threadFor(t);
  await thread.request(echo("a"));
  const unsendable = { order: "echo", value: (() => {}) as never } as const;
  const [first, second] = await Promise.allSettled([
    thread.request(unsendable),
    thread.request(echo("b")),
  ]);
  assert.equal((first as PromiseRejectedResult).reason.name, "ThreadLostError");
  assert.deepEqual(second, { status: "fulfilled", value: "b" });
});

test("RequestThread.request() starts another thread after one died with its requests", async (t) => {
  let started = 0;
  const start = (module: URL) => (started += 1, new Worker(module));
  const thread = threadFor(t, { start });
  const requests = [thread.request({ order: "die", value: "a bug" }), thread.request(echo("a"))];
  for (const request of requests) {
    await assert.rejects(request, { name: "ThreadLostError", message: /a bug|ended/ });
  }
  assert.ok(!thread.isUnavailable);
  assert.equal(await thread.request(echo("b")), "b");
  assert.equal(started, 2);
});

const UNABLE: [what: string, start: () => Worker][] = [
  ["throws", () => {
    throw new Error("not allowed");
  }],
  ["dies before it runs", () => new Worker(NO_MODULE)],
];
for (const [what, start] of UNABLE) {
  test(`RequestThread.request() leaves memory where it is when the thread ${what}`, async (t) => {
    const thread = threadFor(t, { start });
    const memory = new Uint8Array([1, 2, 3]).buffer;
    const request = thread.request({ order: "echo", value: memory }, [memory]);
    await assert.rejects(request, { name: "ThreadUnavailableError" });
    assert.equal(memory.byteLength, 3);
    assert.ok(thread.isUnavailable);
  });
}

test("RequestThread ends an idle thread, and starts one for the next request", async (t) => {
  const exits: Promise<void>[] = [];
  const start = (module: URL) => {
    const worker = new Worker(module);
    exits.push(new Promise((resolve) => worker.on("exit", () => resolve())));
    return worker;
  };
  const thread = threadFor(t, { start, idleMs: 1 });
  assert.equal(await thread.request(echo("a")), "a");
  // The timer alone would not keep the process going.
  const keepAlive = setInterval(() => {}, 1000);
  await exits[0];
  clearInterval(keepAlive);
  assert.equal(await thread.request(echo("b")), "b");
  assert.equal(exits.length, 2);
});

test("RequestThread.close() rejects what waits and what comes later", async () => {
  const thread: Thread = new RequestThread(MODULE);
  const rejection = assert.rejects(thread.request(echo("a")), {
    name: "ThreadLostError",
    message: "the thread was closed",
  });
  await thread.close();
  await rejection;
  await assert.rejects(thread.request(echo("b")), /the thread was closed/);
  assert.ok(!thread.isUnavailable);
});
