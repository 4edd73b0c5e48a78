import assert from "node:assert/strict";
import { test } from "node:test";
import { StallError, StallWatch } from "../../src/http/stall_watch.ts";

const SHORT_TIMEOUT_MS = 8;
const LONG_TIMEOUT_MS = 60_000;

/** Keeps the process alive, as a connection would. The watch does not. */
async function withProcessAlive(use: () => Promise<void>): Promise<void> {
  const timer = setInterval(() => {}, LONG_TIMEOUT_MS);
  try {
    await use();
  } finally {
    clearInterval(timer);
  }
}

test("StallWatch.guard() times out a read without data, even after an idle period", async () => {
  const watch = new StallWatch(SHORT_TIMEOUT_MS);
  await withProcessAlive(async () => {
    await assert.rejects(watch.guard(new Promise(() => {})), StallError);
    await assert.rejects(watch.guard(new Promise(() => {})), StallError);
  });
});

test("StallWatch.start() times out a wait that is not stopped, even if the wait is restarted", async () => {
  const watch = new StallWatch(SHORT_TIMEOUT_MS);
  const stopped = () => assert.fail("the wait was stopped");
  let giveUp = () => {};
  const late = () => giveUp();
  await withProcessAlive(async () => {
    for (let time = 0; time < 2; time++) {
      for (const wait of [stopped, late]) watch.start(wait);
      await new Promise<void>((resolve) => {
        giveUp = resolve;
        watch.stop(stopped);
      });
    }
  });
});

test("StallWatch does not count time during which the process was stopped", async () => {
  const watch = new StallWatch(SHORT_TIMEOUT_MS);
  let isGivenUp = false;
  const giveUp = () => isGivenUp = true;
  watch.start(giveUp);
  // As after SIGSTOP, all missed timers are due at once.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20 * SHORT_TIMEOUT_MS);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.ok(!isGivenUp);
  watch.stop(giveUp);
});
