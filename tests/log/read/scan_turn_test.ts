import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ScanTurn } from "../../../src/log/read/scan_turn.ts";

/** Longer than a turn takes. */
const WORK_MS = 3;

/** The mocked time, which goes on from test to test. */
let nowMs = 1e6;

/** Mocks the clock. @returns a function that lets more time pass than a turn takes. */
function mockWork(context: TestContext): () => void {
  nowMs += WORK_MS;
  context.mock.method(performance, "now", () => nowMs);
  return () => void (nowMs += WORK_MS);
}

test("a scan waits for the event loop only once its turn is over, also when it is alone", async (context) => {
  const work = mockWork(context);
  const turn = new ScanTurn();
  let loops = 0;
  const looping = setImmediate().then(() => loops += 1);
  await turn.next();
  await turn.next();
  assert.equal(loops, 0);
  work();
  await turn.next();
  assert.equal(loops, 1);
  await looping;
});

test("scans that use up their turns get equal shares", async (context) => {
  const work = mockWork(context);
  const order: string[] = [];
  const scans = ["a", "b", "c"].map(async (name) => {
    const turn = new ScanTurn();
    for (let piece = 0; piece < 10; piece++) {
      await turn.next();
      order.push(name);
      work();
    }
  });
  await Promise.all(scans);
  for (let end = 3; end <= order.length; end += 3) {
    const counts = ["a", "b", "c"].map((scan) =>
      order.slice(0, end).filter((name) => name === scan).length
    );
    assert.ok(Math.max(...counts) - Math.min(...counts) <= 2, order.join(""));
  }
});

test("new scans and those that have run take turns, so that neither waits for all others", async (context) => {
  const work = mockWork(context);
  const order: string[] = [];
  const step = async (turn: ScanTurn, name: string) => {
    await turn.next();
    order.push(name);
    work();
  };
  const long = Array.from({ length: 8 }, () => new ScanTurn());
  for (const turn of long) await step(turn, "start");
  const waiting = long.map((turn) => step(turn, "long"));
  const short = Array.from({ length: 2 }, () => step(new ScanTurn(), "short"));
  await Promise.all([...waiting, ...short]);
  const places = order.slice(long.length);
  assert.ok(places.lastIndexOf("short") <= 4, `${places}`);
  const many = Array.from({ length: 8 }, () => step(new ScanTurn(), "new"));
  await Promise.all([...many, step(long[0]!, "old")]);
  assert.ok(order.slice(-9).indexOf("old") <= 2, `${order.slice(-9)}`);
});

test("new scans that come at once work one after another", async (context) => {
  const work = mockWork(context);
  let working = 0;
  let mostAtOnce = 0;
  // A turn that has just begun.
  await new ScanTurn().next();
  await Promise.all(Array.from({ length: 20 }, async () => {
    await new ScanTurn().next();
    mostAtOnce = Math.max(mostAtOnce, ++working);
    // Asynchronous work that waits for nothing.
    for (let step = 0; step < 10; step++) await null;
    work();
    working -= 1;
  }));
  assert.equal(mostAtOnce, 1);
});
