/** Follow sessions that are closed or refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FOLLOWERS_MAX } from "../../src/limits.ts";
import { SCAN_PAUSE_BYTES } from "../../src/log/read/event_scan.ts";
import { ChangeSignal } from "../../src/service/change_signal.ts";
import type { Follow } from "../../src/service/event_log.ts";
import { type FollowHub, FollowSession, LivePages } from "../../src/service/follow.ts";
import { FOLLOW_ALL, nextRecord } from "../support/follow_records.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { openTestLog } from "../support/test_log.ts";
import { gateAt } from "../support/storage_faults.ts";
import { openTestService } from "../support/test_service.ts";

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

test("a session that ends while a large record is sent holds its memory until it is closed", async () => {
  const { log } = await openTestLog(new SimulatedDisk());
  await log.append([preparedBatch("b", { events: [{ payload: "x".repeat(SCAN_PAUSE_BYTES) }] })]);
  let held = 0;
  const hub: FollowHub = {
    snapshot: () => log.snapshot,
    ended: () => null,
    changes: new ChangeSignal(log.snapshot.frontier),
    livePages: new LivePages(),
    reserve() {
      held += 1;
      return Promise.resolve(() => void (held -= 1));
    },
    report: () => {},
  };
  const session = new FollowSession(hub, FOLLOW_ALL, () => {});
  await session.next();
  session.end("buffer_exceeded", "");
  assert.equal(held, 1);
  session.close();
  assert.equal(held, 0);
});
