/** The end of a follow response: the reason, the last event and the connection. */
import assert from "node:assert/strict";
import { FOLLOW_RECORD_BYTES_MAX } from "../../src/limits.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { RawConnection } from "../support/raw_client.ts";
import { failNth } from "../support/storage_faults.ts";
import { batchWith, commit, event, ingest } from "./support/api.ts";
import { FollowReader } from "./support/follow_reader.ts";
import { withServedLog } from "./support/served_log.ts";

const FOLLOW = "GET /v1/events?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n";

/** Reads the end record, which must be the last line in a complete response. */
async function endOf(follow: FollowReader): Promise<object> {
  const end = await follow.nextOf("end");
  assert.equal(await follow.line(), null);
  const { detail, ...rest } = end;
  assert.ok(detail === undefined || (typeof detail === "string" && detail !== ""));
  return rest;
}

test("a shutdown ends hundreds of follows, each after its last event, then their connections", () =>
  withServedLog(async ({ socketPath, reports, shutDown }) => {
    const fresh = await FollowReader.open(socketPath);
    await fresh.catchUp();
    const { last_event_id } = await commit(socketPath, batchWith({}));
    await fresh.takeLive(1);
    const idle = await Promise.all(
      Array.from({ length: 200 }, () => FollowReader.open(socketPath, "&kind=none")),
    );
    for (const follow of idle) await follow.catchUp();
    await shutDown();
    assert.deepEqual(await endOf(fresh), { type: "end", reason: "shutdown", last_event_id });
    for (const follow of idle) {
      const end = { type: "end", reason: "shutdown", last_event_id: null };
      assert.deepEqual(await endOf(follow), end);
    }
    assert.deepEqual(reports, []);
  }));

test("a poisoned writer ends follows with writer_poisoned after the last durable event", () =>
  withServedLog(async ({ socketPath, storage }) => {
    const follow = await FollowReader.open(socketPath);
    await follow.catchUp();
    const { last_event_id } = await commit(socketPath, batchWith({ batch_id: "1" }));
    storage.hook = failNth("sync", 1, { errno: "EIO" });
    assert.equal((await ingest(socketPath, batchWith({ batch_id: "2" }))).status, 503);
    storage.hook = null;
    assert.equal((await follow.takeLive(1))[0]!.event_id, last_event_id);
    assert.deepEqual(await endOf(follow), {
      type: "end",
      reason: "writer_poisoned",
      last_event_id,
    });
    const late = await FollowReader.open(socketPath);
    assert.equal((await late.catchUp()).length, 1);
    assert.equal((await late.nextOf("end")).reason, "writer_poisoned");
  }));

test("an unreadable log ends a follow with replay_failed, in either phase", () =>
  withServedLog(async (before) => {
    const { last_event_id } = await commit(before.socketPath, batchWith({ batch_id: "1" }));
    await before.shutDown();
    await withServedLog(async ({ socketPath, storage, reports }) => {
      storage.hook = failNth("read", 1, { errno: "EIO" });
      const follow = await FollowReader.open(socketPath);
      const end = { type: "end", reason: "replay_failed" };
      assert.deepEqual(await endOf(follow), { ...end, last_event_id: null });
      assert.match(reports.join("\n"), /log could not be read/);
      const live = await FollowReader.open(socketPath);
      const other = await FollowReader.open(socketPath, "&kind=upserted");
      for (const follow of [live, other]) assert.equal((await follow.catchUp()).length, 1);
      storage.hook = failNth("read", 1, { errno: "EIO" });
      await commit(socketPath, batchWith({ batch_id: "2" }));
      assert.deepEqual(await endOf(live), { ...end, last_event_id });
      assert.equal((await other.takeLive(1)).length, 1);
      const again = await FollowReader.open(socketPath);
      assert.equal((await again.catchUp()).length, 2);
      for (const follow of [other, again]) follow.close();
    }, { storage: before.storage });
  }));

/** Commits more data than socket buffers hold. @returns the number of events. */
async function commitMuch(socketPath: string): Promise<number> {
  const payload = "x".repeat(FOLLOW_RECORD_BYTES_MAX / 2);
  const eventCount = 24;
  for (let n = 0; n < eventCount; n++) {
    await commit(socketPath, batchWith({ batch_id: `${n}`, events: [event({ payload })] }));
  }
  return eventCount;
}

test("a stalled follower is ended with buffer_exceeded, unlike one that waits for commits", async () => {
  await withServedLog(async ({ socketPath, service }) => {
    const eventCount = await commitMuch(socketPath);
    const idle = await FollowReader.open(socketPath, "&kind=rare");
    await idle.catchUp();
    const stalled = await RawConnection.open(socketPath);
    stalled.pause();
    await stalled.write(FOLLOW);
    // Then the idle one has waited longer than the timeout, too.
    for (const followers of [2, 1]) {
      while (service.size.followers !== followers) await request(socketPath);
    }
    stalled.resume();
    const response = await stalled.readResponse();
    assert.ok(response!.isComplete);
    const records = response!.body.trimEnd().split("\n").map((line) => JSON.parse(line));
    const end = records.pop();
    assert.equal(end.reason, "buffer_exceeded");
    assert.equal(end.last_event_id, records.at(-1).last_event_id);
    const delivered = records.flatMap(({ events }) => events);
    assert.ok(delivered.length < eventCount, "the follow ended before everything was delivered");
    const rest = await FollowReader.open(socketPath, `&after=${end.last_event_id}`);
    const resumed = await rest.catchUp();
    assert.equal(delivered.length + resumed.length, eventCount, "nothing is lost");
    await commit(socketPath, batchWith({ batch_id: "rare", events: [event({ kind: "rare" })] }));
    assert.equal((await idle.takeLive(1)).length, 1);
    for (const follow of [rest, idle]) follow.close();
    stalled.destroy();
  }, { listen: { writeStallTimeoutMs: 1000 } });
});
