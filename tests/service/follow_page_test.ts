/** The end of a page that a follower reads. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type FollowPage, readFollowPage } from "../../src/service/follow.ts";
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

function keysOf({ record }: FollowPage): string[] {
  const { events } = JSON.parse(Buffer.from(record!).toString());
  return events.map((event: { record_key: string }) => event.record_key);
}

test("readFollowPage() returns its matches so far when it is canceled", async () => {
  const { snapshot, first } = await logOf([WANTED, LONG, LONG, WANTED]);
  let asked = 0;
  const page = await readFollowPage(snapshot, POSITION, () => asked++ < 2);
  assert.deepEqual(keysOf(page), ["wanted"]);
  const { lastEventId, nextAfter, exhausted } = page;
  assert.deepEqual([lastEventId, nextAfter, exhausted], [first, first, false]);
});

test("readFollowPage() keeps its position when it is canceled without a match", async () => {
  const { snapshot, first } = await logOf([WANTED, LONG, LONG, WANTED]);
  const page = await readFollowPage(snapshot, { ...POSITION, after: first }, () => false);
  assert.deepEqual(page, { record: null, lastEventId: null, nextAfter: first, exhausted: false });
});
