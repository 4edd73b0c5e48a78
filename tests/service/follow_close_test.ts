/** A follow session closed in any phase leaks nothing and admits another follower. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FOLLOWERS_MAX } from "../../src/limits.ts";
import type { Log } from "../../src/log/log.ts";
import { ChangeSignal, type Watcher } from "../../src/service/change_signal.ts";
import type { Follow } from "../../src/service/event_log.ts";
import { type FollowHub, FollowSession } from "../../src/service/follow.ts";
import { LivePages } from "../../src/service/follow.ts";
import { FOLLOW_ALL, nextRecord, snapshotRecords } from "../support/follow_records.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { gateAt } from "../support/storage_faults.ts";
import { openTestLog } from "../support/test_log.ts";
import { openTestService } from "../support/test_service.ts";

/** Counts watchers. */
class CountedSignal extends ChangeSignal {
  readonly watchers: Set<Watcher> = new Set();

  override add(watcher: Watcher): void {
    this.watchers.add(watcher);
    super.add(watcher);
  }

  override remove(watcher: Watcher): void {
    this.watchers.delete(watcher);
    super.remove(watcher);
  }
}

/** A hub over a log of one event, and a session that counts the calls to its `close()`. */
async function countedSession() {
  const storage = new SimulatedDisk();
  const { log } = await openTestLog(storage);
  await log.append([preparedBatch("1")]);
  const changes = new CountedSignal(log.snapshot.frontier);
  const hub: FollowHub = {
    snapshot: () => log.snapshot,
    ended: () => null,
    changes,
    livePages: new LivePages(),
    report: (line) => assert.fail(line),
  };
  const counted = { closings: 0 };
  const session = new FollowSession(hub, FOLLOW_ALL, () => counted.closings += 1);
  return { storage, log, changes, session, counted };
}

/** Commits a second event. */
async function commitSecond(log: Log, changes: ChangeSignal): Promise<void> {
  const batches = [preparedBatch("2")];
  const [committed] = await log.append(batches);
  changes.commit(batches, committed!.last_event_id);
}

type Counted = Awaited<ReturnType<typeof countedSession>>;

/** Each function takes a session to one phase and returns its pending `next()` calls. */
const PHASES: [title: string, enter: (counted: Counted) => Promise<Promise<unknown>[]>][] = [
  ["before its first record", () => Promise.resolve([])],
  ["during a snapshot read", async ({ session, storage }) => {
    const gate = gateAt("read");
    storage.hook = gate.hook;
    const next = session.next();
    await gate.reached;
    queueMicrotask(() => gate.open());
    return [next];
  }],
  ["before caught_up", async ({ session }) => {
    await session.next();
    return [];
  }],
  ["before the live phase", async ({ session }) => {
    await snapshotRecords(session);
    return [];
  }],
  ["while waiting", async ({ session, changes }) => {
    await snapshotRecords(session);
    const next = session.next();
    assert.equal(changes.watchers.size, 1);
    return [next];
  }],
  ["while being woken", async ({ session, changes }) => {
    await snapshotRecords(session);
    const next = session.next();
    changes.fire();
    return [next];
  }],
  ["during a live read", async ({ session, changes, log, storage }) => {
    await snapshotRecords(session);
    const next = session.next();
    const gate = gateAt("read");
    storage.hook = gate.hook;
    await commitSecond(log, changes);
    await gate.reached;
    queueMicrotask(() => gate.open());
    return [next];
  }],
  ["after a live record", async ({ session, changes, log }) => {
    await snapshotRecords(session);
    const next = session.next();
    await commitSecond(log, changes);
    await next;
    return [];
  }],
];

for (const [title, enter] of PHASES) {
  test(`FollowSession.close() ${title} leaves nothing watching`, async () => {
    const counted = await countedSession();
    const { session, changes, log } = counted;
    const underWay = await enter(counted);
    session.close();
    session.close();
    assert.equal(changes.watchers.size, 0);
    for (const next of underWay) assert.equal(await next, null);
    assert.equal(await session.next(), null);
    assert.equal(changes.watchers.size, 0);
    assert.equal(counted.counted.closings, 1);
    await log.close();
  });
}

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

test("follow() rejects more than FOLLOWERS_MAX followers until one ends", async () => {
  const { service } = await openTestService(new SimulatedDisk());
  const follows: Follow[] = [];
  for (let place = 0; place < FOLLOWERS_MAX; place++) follows.push(service.follow(FOLLOW_ALL));
  const overloaded = { code: "overloaded", status: 429 };
  assert.throws(() => service.follow(FOLLOW_ALL), overloaded);
  follows[0]!.close();
  follows[0]!.close();
  follows[0] = service.follow(FOLLOW_ALL);
  assert.throws(() => service.follow(FOLLOW_ALL), overloaded);
  follows[1]!.end("buffer_exceeded", "");
  follows[1]!.close();
  follows[1] = service.follow(FOLLOW_ALL);
  assert.throws(() => service.follow(FOLLOW_ALL), overloaded);
  service.endFollowers();
  for (const follow of follows) assert.equal((await nextRecord(follow)).type, "end");
  service.follow(FOLLOW_ALL).close();
  await service.close();
});
