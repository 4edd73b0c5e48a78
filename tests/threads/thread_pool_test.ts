import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { ThreadPool } from "../../src/threads/thread_pool.ts";
import type { Order } from "../support/obeying_worker.ts";

const MODULE = new URL("../support/obeying_worker.ts", import.meta.url);

function poolFor(context: TestContext, threadsMax: number) {
  const started: Worker[] = [];
  const start = (module: URL) => (started.push(new Worker(module)), started.at(-1)!);
  const pool = new ThreadPool<Order, unknown>(MODULE, { threadsMax, start });
  context.after(() => pool.close());
  return { pool, started };
}

const echo = (value: string): Order => ({ order: "echo", value });

test("ThreadPool.request() starts no more threads than it may, and answers each", async (t) => {
  const { pool, started } = poolFor(t, 2);
  const values = Array.from({ length: 12 }, (_, number) => `${number}`);
  assert.deepEqual(await Promise.all(values.map((value) => pool.request(echo(value)))), values);
  assert.equal(started.length, 2);
});

test("ThreadPool.request() starts no thread while another is idle", async (t) => {
  const { pool, started } = poolFor(t, 2);
  for (const value of ["a", "b", "c"]) assert.equal(await pool.request(echo(value)), value);
  assert.equal(started.length, 1);
});

test("ThreadPool.request() fails only the request that a thread died of", async (t) => {
  const { pool, started } = poolFor(t, 1);
  const answers = await Promise.allSettled([
    pool.request(echo("a")),
    pool.request({ order: "die", value: "a bug" }),
    pool.request(echo("b")),
    pool.request(echo("c")),
  ]);
  const statuses = answers.map(({ status }) => status);
  assert.deepEqual(statuses, ["fulfilled", "rejected", "fulfilled", "fulfilled"]);
  assert.equal(started.length, 2);
  assert.ok(!pool.isUnavailable);
});

test("ThreadPool.request() tells each that no thread can be started", async (t) => {
  const start = () => {
    throw new Error("not allowed");
  };
  const pool = new ThreadPool<Order, unknown>(MODULE, { threadsMax: 1, start });
  t.after(() => pool.close());
  for (const request of ["a", "b"].map((value) => pool.request(echo(value)))) {
    await assert.rejects(request, { name: "ThreadUnavailableError", message: /not allowed/ });
  }
  assert.ok(pool.isUnavailable);
});
