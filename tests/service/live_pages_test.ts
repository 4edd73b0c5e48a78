import assert from "node:assert/strict";
import { test } from "node:test";
import { FOLLOW_RECORD_BYTES_MAX, LIVE_PAGES_BYTES_MAX } from "../../src/limits.ts";
import type { Log } from "../../src/log/log.ts";
import { type FollowPage, type FollowPosition, LivePages } from "../../src/service/follow.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { failNth } from "../support/storage_faults.ts";
import { openTestLog } from "../support/test_log.ts";

const FROM_START: FollowPosition = { after: undefined, filter: {}, limitEvents: 10, phase: "live" };

/** A log of one-event batches, each with a payload of `payloadBytes`. */
async function logOf(count: number, payloadBytes: number) {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const payload = "x".repeat(payloadBytes);
  const ids: string[] = [];
  for (let place = 0; place < count; place++) {
    const [committed] = await log.append([preparedBatch(`${place}`, { events: [{ payload }] })]);
    ids.push(committed!.last_event_id);
  }
  return { log, storage, ids };
}

function read(pages: LivePages, { snapshot }: Log, at: FollowPosition) {
  return pages.read(snapshot, at, () => true, () => Promise.resolve(() => {}));
}

test("LivePages.read() reads a page once for concurrent requests", async () => {
  const { log } = await logOf(2, 10);
  const pages = new LivePages();
  const page = await read(pages, log, FROM_START);
  assert.equal(await read(pages, log, FROM_START), page);
  assert.equal(await read(pages, log, { ...FROM_START, filter: {} }), page);
  const others: Partial<FollowPosition>[] = [
    { limitEvents: 9 },
    { after: "00000000-0000-7000-8000-000000000000" },
    { filter: { source: "shop" } },
    { filter: { stream: "shop" } },
    { filter: { recordKey: "shop" } },
    { filter: { kind: "shop" } },
  ];
  const all = new Set([page]);
  for (const other of others) all.add(await read(pages, log, { ...FROM_START, ...other }));
  assert.equal(all.size, 1 + others.length);
});

test("LivePages.read() caches the newest pages up to a limit", async () => {
  const payloadBytes = FOLLOW_RECORD_BYTES_MAX - 1024;
  const count = 2 * Math.floor(LIVE_PAGES_BYTES_MAX / payloadBytes);
  const { log, storage, ids } = await logOf(count, payloadBytes);
  const pages = new LivePages();
  const positions = [undefined, ...ids.slice(0, -1)].map((after) => ({ ...FROM_START, after }));
  const first: FollowPage[] = [];
  for (const at of positions) first.push(await read(pages, log, at));
  const readsBefore = storage.operations.length;
  const again: boolean[] = [];
  for (const [place, at] of positions.toReversed().entries()) {
    again.push(await read(pages, log, at) === first.at(-1 - place));
    if (again.at(-1) === false) break;
  }
  const kept = again.length - 1;
  assert.ok(kept > 0 && kept < count);
  assert.ok(kept * payloadBytes <= LIVE_PAGES_BYTES_MAX);
  assert.ok((kept + 2) * payloadBytes > LIVE_PAGES_BYTES_MAX);
  assert.ok(storage.operations.length > readsBefore);
});

test("LivePages.read() retries after a failed read", async () => {
  const { log, storage } = await logOf(1, 10);
  const pages = new LivePages();
  storage.hook = failNth("read", 1, { errno: "EIO" });
  const failures = [1, 2].map(async () => await read(pages, log, FROM_START));
  for (const failure of failures) await assert.rejects(failure, { code: "EIO" });
  const { lastEventId } = await read(pages, log, FROM_START);
  assert.equal(lastEventId, log.snapshot.frontier);
});
