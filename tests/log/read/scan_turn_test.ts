import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { RUNNING_SCANS_MAX, ScanTurn } from "../../../src/log/read/scan_turn.ts";

/** Mocks the clock. @returns a function that lets more time pass than a turn takes. */
function mockWork(context: TestContext): () => void {
  let nowMs = 0;
  context.mock.method(performance, "now", () => nowMs);
  return () => void (nowMs += 3);
}

test("a few scans run at a time, the others wait in order and give way after a turn", async (context) => {
  const work = mockWork(context);
  const order: string[] = [];
  const running = Array.from({ length: RUNNING_SCANS_MAX }, () => new ScanTurn());
  for (const turn of running) await turn.begin();
  const [first] = running as [ScanTurn];
  const waiting = ["a", "b"].map(async (name) => {
    const turn = new ScanTurn();
    await turn.begin();
    order.push(name);
    turn.end();
  });
  await setImmediate();
  assert.equal(order.length, 0);
  work();
  await first.yield();
  order.push("first");
  await Promise.all(waiting);
  assert.deepEqual(order, ["a", "b", "first"]);
  for (const turn of running) turn.end();
});

test("a scan yields to the event loop only after its turn, also when no other waits", async (context) => {
  const work = mockWork(context);
  const turn = new ScanTurn();
  await turn.begin();
  let loops = 0;
  const looping = setImmediate().then(() => loops += 1);
  await turn.yield();
  assert.equal(loops, 0);
  work();
  await turn.yield();
  assert.equal(loops, 1);
  await looping;
  turn.end();
});

test("ending turns lets the event loop serve sockets before each waiting scan", async () => {
  const running = Array.from({ length: RUNNING_SCANS_MAX }, () => new ScanTurn());
  for (const turn of running) await turn.begin();
  let loops = 0;
  const loopsAt: number[] = [];
  const waiting = Array.from({ length: 3 * RUNNING_SCANS_MAX }, async () => {
    const turn = new ScanTurn();
    await turn.begin();
    loopsAt.push(loops);
    turn.end();
  });
  for (const turn of running) turn.end();
  while (loopsAt.length < waiting.length) {
    await setImmediate();
    loops += 1;
  }
  for (const [at, loop] of loopsAt.entries()) {
    assert.ok(loop >= Math.floor(at / RUNNING_SCANS_MAX), `${loopsAt}`);
  }
  await Promise.all(waiting);
});
