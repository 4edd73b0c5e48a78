/** The end of a page that a follower reads. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { LogSnapshot } from "../../src/log/read/snapshot.ts";
import { type FollowPage, type FollowPosition, readFollowPage } from "../../src/service/follow.ts";
import { preparedBatch } from "../support/prepared.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { openTestLog } from "../support/test_log.ts";
import { SCAN_PAUSE_BYTES } from "../../src/log/read/event_scan.ts";

const POSITION = {
  after: undefined,
  filter: { recordKey: "wanted" },
  limitEvents: 10,
  phase: "snapshot" as const,
};
const LONG = { recordKey: "other", payload: "x".repeat(SCAN_PAUSE_BYTES) };
const WANTED = { recordKey: "wanted" };

/** A log with one batch of these events, and the ids of its first and last event. */
async function logOf(events: { recordKey: string; payload?: string }[]) {
  const { log } = await openTestLog(new SimulatedDisk());
  const [committed] = await log.append([preparedBatch("b", { events })]);
  const { first_event_id: first, last_event_id: last } = committed!;
  return { snapshot: log.snapshot, first, last };
}

/** Reads a page. @returns the sizes of the reservations held, and the most at once, too. */
async function read(snapshot: LogSnapshot, position: FollowPosition, isWanted = () => true) {
  const held: number[] = [];
  let most = 0;
  const page = await readFollowPage(snapshot, position, isWanted, (sizeBytes) => {
    most = Math.max(most, held.push(sizeBytes));
    return Promise.resolve(() => void held.splice(held.indexOf(sizeBytes), 1));
  });
  return { page, held, most };
}

function keysOf({ record }: FollowPage): string[] {
  const { events } = JSON.parse(Buffer.from(record!).toString());
  return events.map((event: { record_key: string }) => event.record_key);
}

test("readFollowPage() returns its matches so far when it is canceled", async () => {
  const { snapshot, first } = await logOf([WANTED, LONG, LONG, WANTED]);
  let asked = 0;
  const { page } = await read(snapshot, POSITION, () => asked++ < 2);
  assert.deepEqual(keysOf(page), ["wanted"]);
  const { lastEventId, nextAfter, exhausted } = page;
  assert.deepEqual([lastEventId, nextAfter, exhausted], [first, first, false]);
});

test("readFollowPage() keeps its position when it is canceled without a match", async () => {
  const { snapshot, first } = await logOf([WANTED, LONG, LONG, WANTED]);
  const { page } = await read(snapshot, { ...POSITION, after: first }, () => false);
  const { record, lastEventId, nextAfter, exhausted } = page;
  assert.deepEqual([record, lastEventId, nextAfter, exhausted], [null, null, first, false]);
});

test("readFollowPage() holds the memory of a large record, and of no other, until its release", async () => {
  const { snapshot } = await logOf([LONG, { ...LONG, recordKey: "wanted" }, LONG]);
  const filter = { kind: "upserted" };
  const first = await read(snapshot, { ...POSITION, filter });
  assert.equal(first.held.length, 1);
  first.page.release();
  assert.deepEqual(first.held, []);
  const none = await read(snapshot, { ...POSITION, filter: { kind: "other" } });
  assert.deepEqual(none.held, []);
});

test("readFollowPage() reads a large event alone, so that it never waits for memory while it holds some", async () => {
  const large = { ...LONG, recordKey: "wanted" };
  const { snapshot, first } = await logOf([large, large]);
  const { page, held, most } = await read(snapshot, POSITION);
  assert.deepEqual([page.lastEventId, page.nextAfter, page.exhausted], [first, first, false]);
  assert.deepEqual([held.length, most], [1, 1]);
});
