/** How follow sessions end: the reasons, and the last records sent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import type { Follow } from "../../src/service/event_log.ts";
import {
  FOLLOW_ALL,
  idsOf,
  nextEvents,
  nextRecord,
  snapshotRecords,
} from "../support/follow_records.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { failNth, gateAt } from "../support/storage_faults.ts";
import { submit, submittedBatch, submittedEvent } from "../support/submitted.ts";
import { openTestService } from "../support/test_service.ts";
import { SCAN_PAUSE_BYTES } from "../../src/log/read/event_scan.ts";

/** A service with two batches of one event each, and their event ids. */
async function smallService() {
  const storage = new SimulatedDisk();
  const { service, reports } = await openTestService(storage);
  const ids: string[] = [];
  for (const batchId of ["1", "2"]) {
    const { body } = await submit(service, submittedBatch("shop", batchId));
    ids.push(body.last_event_id as string);
  }
  return { service, storage, reports, ids };
}

async function assertOver(follow: Follow): Promise<void> {
  assert.equal(await follow.next(), null);
  assert.equal(await follow.next(), null);
  follow.close();
}

test("FollowSession.next() ends with shutdown in every phase", async () => {
  const { service, storage, ids } = await smallService();
  const detail = "the service is shutting down";
  const end = (last: string | undefined) => {
    return { type: "end", reason: "shutdown", last_event_id: last ?? null, detail };
  };
  const follow = () => service.follow({ ...FOLLOW_ALL, limitEvents: 1 });
  const unread = follow();
  const inSnapshot = follow();
  await nextRecord(inSnapshot);
  const beforeCaughtUp = follow();
  await nextRecord(beforeCaughtUp);
  await nextRecord(beforeCaughtUp);
  const waiting = follow();
  await snapshotRecords(waiting);
  const ended = nextRecord(waiting);
  const reading = follow();
  const gate = gateAt("read");
  storage.hook = gate.hook;
  const read = nextEvents(reading);
  await gate.reached;
  service.endFollowers();
  gate.open();
  assert.deepEqual(await ended, end(ids[1]));
  assert.deepEqual(idsOf(await read), [ids[0]]);
  assert.deepEqual(await nextRecord(reading), end(ids[0]));
  assert.deepEqual(await nextRecord(unread), end(undefined));
  assert.deepEqual(await nextRecord(inSnapshot), end(ids[0]));
  assert.deepEqual(await nextRecord(beforeCaughtUp), end(ids[1]));
  const late = follow();
  assert.deepEqual(await nextRecord(late), end(undefined));
  for (const session of [unread, inSnapshot, beforeCaughtUp, waiting, reading, late]) {
    await assertOver(session);
  }
  await service.close();
});

test("FollowSession.next() names a damaged file when it ends with replay_failed", async () => {
  const { service, storage, reports } = await smallService();
  storage.flipBit(TAIL_FILE, 100);
  const follow = service.follow(FOLLOW_ALL);
  const { reason, detail } = await nextRecord(follow) as { reason: string; detail: string };
  assert.equal(reason, "replay_failed");
  assert.match(detail, /^the log could not be read: tail\.ndjson: corrupt at byte 0 /);
  assert.deepEqual(reports, [`follow ended, ${detail}`]);
  await assertOver(follow);
  await service.close();
});

test("FollowSession.next() ends with replay_failed in the live phase while other sessions continue", async () => {
  const { service, storage, ids } = await smallService();
  const [failing, later] = [service.follow(FOLLOW_ALL), service.follow(FOLLOW_ALL)];
  for (const follow of [failing, later]) await snapshotRecords(follow);
  const ended = nextRecord(failing);
  storage.hook = failNth("read", 1, { errno: "EIO" });
  await submit(service, submittedBatch("shop", "3"));
  assert.deepEqual(await ended, {
    type: "end",
    reason: "replay_failed",
    last_event_id: ids[1],
    detail: "the log could not be read",
  });
  await assertOver(failing);
  // `later` has the same position but was opened after the failure.
  assert.equal((await nextEvents(later)).events[0]!.batch_id, "3");
  later.close();
  await service.close();
});

test("FollowSession.next() ends with shutdown during a long scan", async () => {
  const storage = new SimulatedDisk();
  const { service } = await openTestService(storage);
  const payload = "x".repeat(SCAN_PAUSE_BYTES);
  const events = [submittedEvent("orders", payload)];
  for (let i = 0; i < 8; i++) await submit(service, { source: "shop", batch_id: `${i}`, events });
  const searching = service.follow({ ...FOLLOW_ALL, filter: { kind: "nothing" } });
  const gate = gateAt("read");
  storage.hook = gate.hook;
  const record = nextRecord(searching);
  await gate.reached;
  service.endFollowers();
  const readsBefore = storage.operations.length;
  gate.open();
  const detail = "the service is shutting down";
  assert.deepEqual(await record, { type: "end", reason: "shutdown", last_event_id: null, detail });
  assert.ok(storage.operations.length - readsBefore < 20, "the rest of the log is not read");
  await assertOver(searching);
  await service.close();
});
