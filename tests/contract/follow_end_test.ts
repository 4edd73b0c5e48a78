/** The end of a follow response: the reason, the last event and the connection. */
import assert from "node:assert/strict";
import { FOLLOW_RECORD_BYTES_MAX } from "../../src/limits.ts";
import type { EventLog, EventLogService } from "../../src/service/event_log.ts";
import { test } from "../support/tested_service.ts";
import { Gate } from "../support/gate.ts";
import { RawConnection } from "../support/raw_client.ts";
import { alteredLog } from "../support/stub_log.ts";
import { failNth } from "../support/storage_faults.ts";
import { batchWith, commit, event, ingest } from "./support/api.ts";
import { FollowReader } from "./support/follow_reader.ts";
import { withService } from "./support/served.ts";
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

test("a shutdown ends each follow with its last event, then closes the connection", () =>
  withServedLog(async ({ socketPath, shutDown }) => {
    const fresh = await FollowReader.open(socketPath);
    await fresh.catchUp();
    const { last_event_id } = await commit(socketPath, batchWith({}));
    await fresh.takeLive(1);
    const idle = await FollowReader.open(socketPath, "&kind=none");
    await idle.catchUp();
    const raw = await RawConnection.open(socketPath, FOLLOW);
    await raw.receive(1);
    await shutDown();
    assert.deepEqual(await endOf(fresh), { type: "end", reason: "shutdown", last_event_id });
    assert.deepEqual(await endOf(idle), { type: "end", reason: "shutdown", last_event_id: null });
    await raw.ended();
    const response = await raw.readResponse();
    assert.ok(response!.isComplete, "the last chunk has arrived");
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

/** A log that opens the gate when a stalled client's session ends. */
function tellingOfEnd(gate: Gate) {
  return (service: EventLogService): EventLog =>
    alteredLog(service, {
      follow(query) {
        const session = service.follow(query);
        return {
          next: () => session.next(),
          close: () => session.close(),
          end(reason, detail) {
            gate.open();
            return session.end(reason, detail);
          },
        };
      },
    });
}

test("a stalled follower is ended with buffer_exceeded, unlike one that waits for commits", async () => {
  const ended = new Gate();
  await withServedLog(async ({ socketPath }) => {
    const eventCount = await commitMuch(socketPath);
    const idle = await FollowReader.open(socketPath, "&kind=rare");
    await idle.catchUp();
    const stalled = await RawConnection.open(socketPath);
    stalled.pause();
    await stalled.write(FOLLOW);
    // Now the idle one has waited longer than the timeout, too.
    await ended.opened;
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
  }, { log: tellingOfEnd(ended), listen: { writeStallTimeoutMs: 1000 } });
});

test("a stalled follower delays neither commits nor other followers", async () => {
  await withService(async ({ socketPath }) => {
    const stalled = await RawConnection.open(socketPath);
    stalled.pause();
    await stalled.write(FOLLOW);
    const reading = await FollowReader.open(socketPath);
    await reading.catchUp();
    const eventCount = await commitMuch(socketPath);
    assert.equal((await reading.takeLive(eventCount)).length, eventCount);
    reading.close();
    stalled.destroy();
  });
});
