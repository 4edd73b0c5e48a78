/** Records, pages and the end of a follow session, beyond what a client can make it do. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  FOLLOW_POSITION_INTERVAL_MS,
  FOLLOW_RECORD_BYTES_MAX,
  FOLLOWERS_MAX,
} from "../../src/limits.ts";
import { SCAN_PAUSE_BYTES } from "../../src/log/read/event_scan.ts";
import type { LogSnapshot } from "../../src/log/read/snapshot.ts";
import { ChangeSignal } from "../../src/service/change_signal.ts";
import {
  createLivePages,
  type FollowHub,
  type FollowPosition,
  FollowSession,
  readFollowPage,
  readLivePage,
} from "../../src/service/follow.ts";
import {
  FOLLOW_ALL,
  idsOf,
  nextEvents,
  nextRecord,
  snapshotRecords,
} from "../support/follow_records.ts";
import { preparedBatch } from "../support/prepared.ts";
import { sealAll } from "../support/sealing.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { failNth, gateAt } from "../support/storage_faults.ts";
import { replayAll } from "../support/stream_listing.ts";
import { submit, submittedBatch, submittedEvent } from "../support/submitted.ts";
import { openTestLog } from "../support/test_log.ts";
import { openTestService } from "../support/test_service.ts";

test("follow() ends a record before it exceeds the size limit but after at least one event", async () => {
  const sizes = [100, 100, 100, 300, 10, 300, 300, 120, 120];
  const { service } = await openTestService(new SimulatedDisk());
  const events = sizes.map((size) => submittedEvent("a", "x".repeat(size * 1024)));
  await submit(service, { source: "shop", batch_id: "1", events });
  const follow = service.follow(FOLLOW_ALL);
  const { snapshot } = await snapshotRecords(follow);
  const kibibytes = (records: typeof snapshot) =>
    records.map(({ events }) => events.map(({ payload }) => (payload as string).length / 1024));
  const expected = [[100, 100], [100], [300], [10], [300], [300], [120, 120]];
  assert.equal(FOLLOW_RECORD_BYTES_MAX, 256 * 1024);
  assert.deepEqual(kibibytes(snapshot), expected);
  await submit(service, { source: "shop", batch_id: "2", events });
  const live = [];
  for (let place = 0; place < expected.length; place++) live.push(await nextEvents(follow));
  assert.deepEqual(kibibytes(live), expected);
  follow.close();
  await service.close();
});

/** A service whose log is split into these files, each of one event. @returns the event ids. */
async function serviceOfFiles(streams: string[]) {
  const storage = new SimulatedDisk();
  for (const [place, stream] of streams.entries()) {
    await sealAll(storage);
    const { service } = await openTestService(storage);
    await submit(service, submittedBatch("shop", `${place}`, [stream]));
    await service.close();
  }
  const { service } = await openTestService(storage);
  const ids = (await replayAll(service)).map((event) => event.event_id);
  return { service, ids };
}

test("follow() reports its position during a long scan, at the end of each file", async (context) => {
  const { service, ids } = await serviceOfFiles(["a", "a", "b", "a", "a"]);
  let nowMs = 0;
  context.mock.method(performance, "now", () => nowMs += FOLLOW_POSITION_INTERVAL_MS);
  const follow = service.follow({ ...FOLLOW_ALL, filter: { stream: "b" } });
  const { snapshot, caughtUp } = await snapshotRecords(follow);
  assert.deepEqual(snapshot.map(({ next_after }) => next_after), ids);
  const found = snapshot.map((record) => idsOf(record));
  assert.deepEqual(found, [[], [], [ids[2]], [], []]);
  assert.equal(caughtUp.next_after, ids[4]);
  follow.close();
  await service.close();
  // Deno restores no mocks after a test.
  context.mock.restoreAll();
});

test("follow() rejects more than FOLLOWERS_MAX followers until one ends", async () => {
  const { service } = await openTestService(new SimulatedDisk());
  const follows = Array.from({ length: FOLLOWERS_MAX }, () => service.follow(FOLLOW_ALL));
  const overloaded = { code: "overloaded" };
  assert.throws(() => service.follow(FOLLOW_ALL), overloaded);
  for (const leave of ["close", "end"] as const) {
    const [leaving] = follows.splice(0, 1);
    if (leave === "end") leaving!.end("buffer_exceeded", "");
    // The second time, its place is not freed again.
    for (let times = 0; times < 2; times++) leaving!.close();
    follows.push(service.follow(FOLLOW_ALL));
    assert.throws(() => service.follow(FOLLOW_ALL), overloaded);
  }
  service.endFollowers();
  for (const follow of follows) assert.equal((await nextRecord(follow)).type, "end");
  service.follow(FOLLOW_ALL).close();
  await service.close();
});

test("FollowSession.close() during a failing read ends the session without another record", async () => {
  const storage = new SimulatedDisk();
  const { service, reports } = await openTestService(storage);
  await service.append(preparedBatch("1"));
  const gate = gateAt("read");
  storage.hook = gate.hook;
  const follow = service.follow(FOLLOW_ALL);
  const next = follow.next();
  await gate.reached;
  follow.close();
  gate.open({ errno: "EIO" });
  assert.equal(await next, null);
  assert.equal(reports.length, 1);
  await service.close();
});

const LONG = { recordKey: "other", payload: "x".repeat(SCAN_PAUSE_BYTES) };
const WANTED = { recordKey: "wanted" };
const POSITION: FollowPosition = {
  after: undefined,
  filter: WANTED,
  limitEvents: 10,
  phase: "snapshot",
};

/** A log with one batch of these events, and the id of its first. */
async function logOf(events: { recordKey?: string; payload?: string }[]) {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  const [committed] = await log.append([preparedBatch("b", { events })]);
  return { storage, snapshot: log.snapshot, first: committed!.first_event_id };
}

/** A memory budget that counts the reservations held now, and the most at once. */
function countingMemory() {
  const count = { held: 0, most: 0 };
  const reserve = () => {
    count.held += 1;
    count.most = Math.max(count.most, count.held);
    return Promise.resolve(() => void (count.held -= 1));
  };
  return { count, reserve };
}

/** Reads a page. @returns the memory that it uses, too. */
async function read(snapshot: LogSnapshot, position: FollowPosition, isWanted = () => true) {
  const { count, reserve } = countingMemory();
  return { count, page: await readFollowPage(snapshot, position, isWanted, reserve) };
}

test("readFollowPage() returns its matches so far when it is canceled, and its position", async () => {
  const { snapshot, first } = await logOf([WANTED, LONG, LONG, WANTED]);
  let asked = 0;
  const found = await read(snapshot, POSITION, () => asked++ < 3);
  const { events } = JSON.parse(Buffer.from(found.page.record!).toString());
  assert.deepEqual(events.map((event: { event_id: string }) => event.event_id), [first]);
  assert.equal(found.page.lastEventId, first);
  const none = await read(snapshot, { ...POSITION, after: first }, () => false);
  assert.deepEqual([none.page.record, none.page.lastEventId], [null, null]);
  for (const { page } of [found, none]) {
    assert.deepEqual([page.nextAfter, page.exhausted], [first, false]);
  }
});

test("readFollowPage() reads a large event alone, and holds its memory until its release", async () => {
  const large = { ...LONG, ...WANTED };
  const { snapshot } = await logOf([LONG, large, large]);
  const { page, count } = await read(snapshot, POSITION);
  assert.deepEqual([page.nextAfter, page.exhausted], [page.lastEventId, false]);
  // It never waits for memory while it holds some.
  assert.deepEqual(count, { held: 1, most: 1 });
  page.release();
  assert.equal(count.held, 0);
  const none = await read(snapshot, { ...POSITION, filter: { kind: "other" } });
  assert.deepEqual(none.count, { held: 0, most: 1 });
});

function hubOf(snapshot: LogSnapshot, reserve: FollowHub["reserve"]): FollowHub {
  return {
    snapshot: () => snapshot,
    ended: () => null,
    changes: new ChangeSignal(snapshot.frontier),
    livePages: createLivePages(),
    tryReserve: () => () => {},
    reserve,
    report: () => {},
  };
}

test("a session that ends while a large record is sent holds its memory until it is closed", async () => {
  const { snapshot } = await logOf([LONG]);
  const { count, reserve } = countingMemory();
  const session = new FollowSession(hubOf(snapshot, reserve), FOLLOW_ALL);
  await session.next();
  session.end("buffer_exceeded", "");
  assert.equal(count.held, 1);
  session.close();
  assert.equal(count.held, 0);
});

test("a session sends short records while there is no memory, and waits with a long event", async () => {
  const short = { payload: "x".repeat(12 * 1024) };
  const { snapshot } = await logOf([short, short, { payload: short.payload.repeat(5) }]);
  const { count, reserve } = countingMemory();
  const hub = { ...hubOf(snapshot, reserve), tryReserve: () => null };
  const session = new FollowSession(hub, FOLLOW_ALL);
  for (const held of [0, 0, 1]) {
    assert.equal((await nextEvents(session)).events.length, 1);
    assert.equal(count.held, held);
  }
  session.close();
  assert.deepEqual(count, { held: 0, most: 1 });
});

test("readLivePage() reads a page once for all followers, and again after a failed read", async () => {
  const { storage, snapshot } = await logOf([WANTED]);
  const hub = hubOf(snapshot, countingMemory().reserve);
  const readBoth = () => [1, 2].map(() => readLivePage(hub, snapshot, POSITION));
  storage.hook = failNth("read", 1, { errno: "EIO" });
  for (const failure of readBoth()) await assert.rejects(failure, { code: "EIO" });
  const users = readBoth().map(async (page) => (await page).users);
  // Both are counted before either can release it.
  assert.deepEqual(await Promise.all(users), [2, 2]);
});
