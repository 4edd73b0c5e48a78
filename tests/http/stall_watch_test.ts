import assert from "node:assert/strict";
import { test } from "node:test";
import { StallError, StallWatch } from "../../src/http/stall_watch.ts";

const SHORT_TIMEOUT_MS = 8;
const LONG_TIMEOUT_MS = 60_000;

test("StallWatch.guard() passes a value and an error on", async () => {
  const watch = new StallWatch(LONG_TIMEOUT_MS);
  assert.equal(await watch.guard(Promise.resolve(1)), 1);
  await assert.rejects(watch.guard(Promise.reject(new Error("broken"))), /broken/);
});

/** The watch does not keep a process alive: a connection does, or in a test this. */
async function withProcessAlive(use: () => Promise<void>): Promise<void> {
  const timer = setInterval(() => {}, LONG_TIMEOUT_MS);
  try {
    await use();
  } finally {
    clearInterval(timer);
  }
}

test("StallWatch.guard() gives up a read that brings nothing", async () => {
  const watch = new StallWatch(SHORT_TIMEOUT_MS);
  const { promise, resolve } = Promise.withResolvers<number>();
  await withProcessAlive(() => assert.rejects(watch.guard(promise), StallError));
  resolve(1);
});

test("StallWatch.guard() serves reads after an idle time", async () => {
  const watch = new StallWatch(SHORT_TIMEOUT_MS);
  await withProcessAlive(async () => {
    await assert.rejects(watch.guard(new Promise(() => {})), StallError);
    await assert.rejects(watch.guard(new Promise(() => {})), StallError);
  });
});
