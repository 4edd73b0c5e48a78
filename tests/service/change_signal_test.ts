import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers";
import { ChangeSignal, WAKES_PER_TURN_MAX } from "../../src/service/change_signal.ts";

/** Resolves in the next turn of the event loop. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("ChangeSignal.fire() wakes each waiter once, asynchronously", async () => {
  const signal = new ChangeSignal();
  const woken: string[] = [];
  signal.add(() => woken.push("a"));
  signal.add(() => woken.push("b"));
  signal.fire();
  assert.equal(woken.length, 0);
  signal.add(() => woken.push("later"));
  await nextTurn();
  assert.deepEqual(woken.toSorted(), ["a", "b"]);
  await nextTurn();
  assert.equal(woken.length, 2);
  signal.fire();
  await nextTurn();
  assert.deepEqual(woken.slice(2), ["later"]);
});

test("ChangeSignal.remove() removes only one waiter", async () => {
  const signal = new ChangeSignal();
  const woken: string[] = [];
  const removed = () => woken.push("removed");
  signal.add(removed);
  signal.add(() => woken.push("kept"));
  signal.remove(removed);
  signal.remove(removed);
  signal.fire();
  await nextTurn();
  assert.deepEqual(woken, ["kept"]);
});

test("ChangeSignal.fire() wakes waiters in order and yields to the event loop", async () => {
  const signal = new ChangeSignal();
  const woken: number[] = [];
  const count = 3 * WAKES_PER_TURN_MAX;
  for (let number = 0; number < count; number++) signal.add(() => woken.push(number));
  signal.fire();
  await nextTurn();
  assert.equal(woken.length, WAKES_PER_TURN_MAX);
  signal.add(() => woken.push(-1));
  signal.fire();
  signal.fire();
  let turns = 0;
  for (; woken.length <= count; turns++) await nextTurn();
  assert.ok(turns >= 2);
  assert.equal(woken.length, count + 1);
  assert.equal(woken.at(-1), -1);
});
