/** `GET /v1/events?follow=true`: records, their limits and positions, and live delivery. */
import assert from "node:assert/strict";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { allEvents, batchWith, commit, event, NO_EVENT_ID } from "./support/api.ts";
import { FollowReader } from "./support/follow_reader.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

/** Commits one event with a record key. */
function commitKey(socketPath: string, recordKey: string, members: object = {}) {
  const events = [event({ record_key: recordKey, ...members })];
  return commit(socketPath, batchWith({ batch_id: recordKey, events }));
}

function keysOf(events: readonly { record_key: string }[]): string[] {
  return events.map(({ record_key }) => record_key);
}

/** The position members of a record that ends at the frontier. */
function atFrontier(id: string | null) {
  return { next_after: id, snapshot_through_event_id: id };
}

test("follow: without events, one empty snapshot record is sent, then caught_up", () =>
  withService(async ({ socketPath }) => {
    const empty = { type: "events", phase: "snapshot", events: [] };
    const onEmptyLog = await FollowReader.open(socketPath);
    const { last_event_id } = await commitKey(socketPath, "1");
    const afterFrontier = await FollowReader.open(socketPath, `&after=${last_event_id}`);
    for (const [follow, id] of [[onEmptyLog, null], [afterFrontier, last_event_id]] as const) {
      assert.deepEqual(await follow.next(), { ...empty, ...atFrontier(id) });
      assert.deepEqual(await follow.next(), { type: "caught_up", ...atFrontier(id) });
      follow.close();
    }
  }));

test("follow: the snapshot is sent, then caught_up, then each commit as a live record", () =>
  withService(async ({ socketPath }) => {
    const first = await commitKey(socketPath, "1");
    const follow = await FollowReader.open(socketPath);
    const stored = await allEvents(socketPath);
    assert.deepEqual(await follow.next(), {
      type: "events",
      phase: "snapshot",
      events: stored,
      last_event_id: first.last_event_id,
      ...atFrontier(first.last_event_id),
    });
    assert.deepEqual(await follow.next(), {
      type: "caught_up",
      ...atFrontier(first.last_event_id),
    });
    for (const key of ["2", "3"]) {
      const { last_event_id } = await commitKey(socketPath, key);
      assert.deepEqual(await follow.next(), {
        type: "events",
        phase: "live",
        events: (await allEvents(socketPath)).slice(-1),
        last_event_id,
        ...atFrontier(last_event_id),
      });
    }
    follow.close();
  }));

test("follow: uncommitted events are not delivered", () =>
  withServedLog(async ({ socketPath, storage }) => {
    const follow = await FollowReader.open(socketPath);
    await follow.catchUp();
    const bad = batchWith({ batch_id: "bad", events: [event({ kind: "" })] });
    assert.equal((await request(socketPath, { body: bad })).status, 400);
    storage.hook = ({ kind }) => kind === "write" ? { errno: "ENOSPC" } : null;
    const full = await request(socketPath, { body: batchWith({ batch_id: "full" }) });
    assert.equal(full.json().error, "storage_full");
    storage.hook = null;
    await commitKey(socketPath, "good");
    assert.deepEqual(keysOf(await follow.takeLive(1)), ["good"]);
    follow.close();
  }));

test("follow: limit applies per events record, whose position is not past its last event", () =>
  withService(async ({ socketPath }) => {
    const unwanted = event({ kind: "unwanted" });
    const events = ["1", "2", "3", "4"].flatMap((record_key) => [event({ record_key }), unwanted]);
    const commitAll = (batch_id: string) => commit(socketPath, batchWith({ batch_id, events }));
    let { last_event_id } = await commitAll("snapshot");
    const follow = await FollowReader.open(socketPath, "&limit=2&kind=upserted");
    for (const phase of ["snapshot", "live"]) {
      if (phase === "live") ({ last_event_id } = await commitAll(phase));
      for (const keys of [["1", "2"], ["3", "4"]]) {
        const record = await follow.nextOf("events");
        assert.deepEqual([record.phase, keysOf(record.events)], [phase, keys]);
        const lastId = record.events.at(-1)!.event_id;
        assert.deepEqual([record.next_after, record.last_event_id], [lastId, lastId]);
        assert.equal(record.snapshot_through_event_id, last_event_id);
      }
      if (phase === "snapshot") {
        assert.equal((await follow.nextOf("caught_up")).next_after, last_event_id);
      }
    }
    follow.close();
  }));

test("follow: after need not be an event; past the frontier, only later events are sent", () =>
  withServedLog(async ({ socketPath }) => {
    const { last_event_id } = await commitKey(socketPath, "1");
    const before = await FollowReader.open(socketPath, `&after=${NO_EVENT_ID}`);
    assert.deepEqual(keysOf(await before.catchUp()), ["1"]);
    before.close();
    // The clock of this log stands still, so ids increase by one.
    const counter = parseInt(last_event_id.slice(-4), 16) + 2;
    const after = last_event_id.slice(0, -4) + counter.toString(16).padStart(4, "0");
    const follow = await FollowReader.open(socketPath, `&after=${after}`);
    const at = { next_after: after, snapshot_through_event_id: last_event_id };
    const empty = { type: "events", phase: "snapshot", events: [] };
    assert.deepEqual(await follow.next(), { ...empty, ...at });
    assert.deepEqual(await follow.next(), { type: "caught_up", ...at });
    for (const key of ["2", "3", "4"]) await commitKey(socketPath, key);
    const [first] = await follow.takeLive(1);
    assert.deepEqual([first!.record_key, first!.event_id > after], ["4", true]);
    follow.close();
  }));

test("follow: commits without a match produce one record, of the moved position, after 5 s", () =>
  withService(async ({ socketPath }) => {
    await commitKey(socketPath, "1");
    const follow = await FollowReader.open(socketPath, "&kind=nothing");
    assert.deepEqual(await follow.catchUp(), []);
    await commitKey(socketPath, "2");
    const { last_event_id } = await commitKey(socketPath, "3");
    const empty = { type: "events", phase: "live", events: [] };
    assert.deepEqual(await follow.next(), { ...empty, ...atFrontier(last_event_id) });
    // The position moves again, but a matching event is sent first.
    const committed = await commitKey(socketPath, "4", { kind: "nothing" });
    assert.deepEqual(keysOf((await follow.nextOf("events")).events), ["4"]);
    follow.close();
    // A consumer that resumes from the empty record misses nothing.
    const resumed = await FollowReader.open(socketPath, `&kind=nothing&after=${last_event_id}`);
    assert.deepEqual(keysOf(await resumed.catchUp()), ["4"]);
    assert.ok(committed.last_event_id > last_event_id);
    resumed.close();
  }));
