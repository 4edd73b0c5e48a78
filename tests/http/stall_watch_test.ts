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

test("StallWatch.start() gives up what is not stopped in time, each time anew", async () => {
  const watch = new StallWatch(SHORT_TIMEOUT_MS);
  const stopped = { sweeps: 0, giveUp: () => assert.fail("it was stopped") };
  await withProcessAlive(async () => {
    for (let time = 0; time < 2; time++) {
      watch.start(stopped);
      await new Promise<void>((giveUp) => {
        watch.start({ sweeps: 0, giveUp });
        watch.stop(stopped);
      });
    }
  });
});
