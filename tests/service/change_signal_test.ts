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

/** A watcher that records what it is told. */
class Recorder implements Watcher {
  readonly filter: EventFilter;
  readonly matches: (string | null)[] = [];
  wakes = 0;
  hasNews = true;

  constructor(filter: EventFilter = {}) {
    this.filter = filter;
  }

  matched(before: string | null): void {
    this.matches.push(before);
  }

  isDue(): boolean {
    return this.hasNews;
  }

  wake(): void {
    this.wakes += 1;
  }
}

test("ChangeSignal.commit() tells exactly the watchers whose filter matches an event, once", () => {
  const values = {
    source: ["shop", "crm"],
    stream: ["orders", "s"],
    recordKey: ['"', "Zoë\n", "orders"],
    kind: ["upserted", "orders"],
  };
  const filters: EventFilter[] = [{}];
  for (const [member, choices] of Object.entries(values)) {
    for (const filter of [...filters]) {
      for (const value of choices) filters.push({ ...filter, [member]: value });
    }
  }
  const signal = new ChangeSignal("0");
  const recorders = filters.map((filter) => new Recorder(filter));
  for (const recorder of recorders) signal.add(recorder);
  const events = [
    { stream: "orders", recordKey: '"', kind: "upserted" },
    { stream: "orders", recordKey: '"', kind: "upserted" },
    { stream: "s", recordKey: "Zoë\n", kind: "orders" },
  ];
  const commits = [["shop"], ["shop", "crm"], ["erp"]].map((sources) =>
    sources.map((source) => preparedBatch("1", { source, events }))
  );
  const expected: (string | null)[][] = filters.map(() => []);
  for (const [number, batches] of commits.entries()) {
    signal.commit(batches, `${number + 1}`);
    assert.equal(signal.frontier, `${number + 1}`);
    const all = batches.flatMap(({ source }) => events.map((event) => ({ source, ...event })));
    for (const [place, filter] of filters.entries()) {
      const isMatch = all.some((event) =>
        Object.entries(filter).every(([member, value]) =>
          event[member as keyof typeof event] === value
        )
      );
      if (isMatch) expected[place]!.push(`${number}`);
    }
  }
  assert.deepEqual(recorders.map(({ matches }) => matches), expected);
  for (const recorder of recorders) signal.remove(recorder);
});

test("ChangeSignal wakes watchers asynchronously, for a match, a position or a change", async () => {
  const signal = new ChangeSignal(null);
  const [matching, quiet, other] = [{}, { kind: "none" }, { source: "other" }].map((filter) =>
    new Recorder(filter)
  ) as [Recorder, Recorder, Recorder];
  other.hasNews = false;
  for (const watcher of [matching, quiet, other]) signal.add(watcher);
  const wakes = () => [matching, quiet, other].map(({ wakes }) => wakes);
  signal.commit([preparedBatch("1")], "1");
  assert.deepEqual(wakes(), [0, 0, 0]);
  await nextTurn();
  assert.deepEqual(wakes(), [1, 0, 0]);
  signal.sweep();
  await nextTurn();
  assert.deepEqual(wakes(), [2, 1, 0]);
  signal.fire();
  await nextTurn();
  assert.deepEqual(wakes(), [3, 2, 1]);
  signal.remove(matching);
  signal.remove(matching);
  signal.fire();
  await nextTurn();
  assert.deepEqual(wakes(), [3, 3, 2]);
  for (const watcher of [quiet, other]) signal.remove(watcher);
});

test("ChangeSignal wakes in order and yields to the event loop", async () => {
  const signal = new ChangeSignal(null);
  const woken: number[] = [];
  const count = 3 * WAKES_PER_TURN_MAX;
  const watchers = Array.from(
    { length: count },
    (_, number) => Object.assign(new Recorder(), { wake: () => woken.push(number) }),
  );
  for (const watcher of watchers) signal.add(watcher);
  signal.fire();
  await nextTurn();
  assert.equal(woken.length, WAKES_PER_TURN_MAX);
  let turns = 0;
  for (; woken.length < count; turns++) await nextTurn();
  assert.ok(turns >= 2);
  assert.deepEqual(woken, watchers.map((_, number) => number));
  for (const watcher of watchers) signal.remove(watcher);
});
