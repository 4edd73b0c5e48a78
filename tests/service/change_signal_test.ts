import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers";
import type { EventFilter } from "../../src/log/line/stored_line.ts";
import { ChangeSignal, WAKES_PER_TURN_MAX, type Watcher } from "../../src/service/change_signal.ts";
import { preparedBatch } from "../support/prepared.ts";

/** Resolves in the next turn of the event loop. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function watcher(members: Partial<Watcher>): Watcher {
  return { filter: {}, matched() {}, isDue: () => true, wake() {}, ...members };
}

const EVENT = { stream: "orders", recordKey: '"Zoë\n', kind: "upserted" };
const BATCHES = ["shop", "crm"].map((source) =>
  preparedBatch("1", { source, events: [{ kind: "first" }, EVENT, EVENT] })
);
const FILTERS: [isMatch: boolean, filter: EventFilter][] = [
  [true, {}],
  [true, { source: "shop" }],
  [true, { stream: "orders" }],
  [true, { recordKey: EVENT.recordKey }],
  [true, { kind: "upserted" }],
  [true, { source: "crm", ...EVENT }],
  [false, { source: "erp" }],
  [false, { source: "shop", stream: "upserted" }],
  [false, { ...EVENT, recordKey: "orders" }],
  [false, { source: "shop", ...EVENT, kind: "deleted" }],
];

test("ChangeSignal.commit() tells exactly the watchers whose filter matches an event, once", () => {
  const groups = [FILTERS, ...FILTERS.map((filter) => [filter])];
  for (const filters of groups) {
    const signal = new ChangeSignal("0");
    const told = filters.map((): (string | null)[] => []);
    for (const [place, [, filter]] of filters.entries()) {
      signal.add(watcher({ filter, matched: (before) => void told[place]!.push(before) }));
    }
    for (const frontier of ["1", "2"]) signal.commit(BATCHES, frontier);
    assert.deepEqual(told, filters.map(([isMatch]) => isMatch ? ["0", "1"] : []));
  }
});

test("ChangeSignal wakes in order and yields to the event loop", async () => {
  const signal = new ChangeSignal(null);
  const woken: number[] = [];
  const count = 3 * WAKES_PER_TURN_MAX;
  const numbers = Array.from({ length: count }, (_, number) => number);
  const watchers = numbers.map((number) => watcher({ wake: () => woken.push(number) }));
  for (const added of watchers) signal.add(added);
  signal.fire();
  assert.equal(woken.length, 0);
  await nextTurn();
  assert.equal(woken.length, WAKES_PER_TURN_MAX);
  let turns = 0;
  for (; woken.length < count; turns++) await nextTurn();
  assert.ok(turns >= 2);
  assert.deepEqual(woken, numbers);
  for (const removed of watchers) signal.remove(removed);
});
