/** `POST /v1/events`: committed events, idempotency and receipts. */
import assert from "node:assert/strict";
import { verifyEvent } from "../../src/event/verify_event.ts";
import { BATCH_EVENTS_MAX } from "../../src/limits.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import {
  allEvents,
  assertError,
  batchWith,
  commit,
  event,
  ingest,
  replayPage,
} from "./support/api.ts";
import { withService } from "./support/served.ts";

test("identical events under the same identity return the original receipt as a duplicate", () =>
  withService(async ({ socketPath }) => {
    const batch = batchWith({ events: [event(), event({ record_key: "2" })] });
    const first = await commit(socketPath, batch);
    await commit(socketPath, batchWith({ batch_id: "other" }));
    // The same batch, but with reordered members, escapes and an explicit version written `1.0`.
    const respelled = `{"events": ${JSON.stringify(batch.events)}, "v": 1.0,
      "source": "sh\\u006fp", "batch_id": "b"}`;
    for (const body of [batch, respelled]) {
      const reply = await ingest(socketPath, body);
      assert.equal(reply.status, 200);
      assert.deepEqual(reply.json(), { ...first, status: "duplicate" });
    }
    assert.equal((await allEvents(socketPath)).length, 3);
  }));

test("different events under the same identity are a batch_id_conflict, and nothing is written", () =>
  withService(async ({ socketPath }) => {
    await commit(socketPath, batchWith({}));
    const others = [
      { events: [event({ payload: 1 })] },
      { events: [event({ kind: "deleted" })] },
      { events: [event({ occurred_at: "2026-01-01T00:00:00Z" })] },
      { events: [event(), event()] },
    ];
    for (const members of others) {
      const reply = await ingest(socketPath, batchWith(members));
      assertError(reply, "batch_id_conflict", { source: "shop", batch_id: "b" });
    }
    assert.equal((await allEvents(socketPath)).length, 1);
  }));

test("a batch is identified by source and batch_id; its digest omits batch_id and precondition", () =>
  withService(async ({ socketPath }) => {
    const one = await commit(socketPath, batchWith({ batch_id: "1" }));
    const stream_precondition = { stream: "orders", expected_frontier: one.last_event_id };
    const two = await commit(socketPath, batchWith({ batch_id: "2", stream_precondition }));
    assert.equal(two.batch_digest, one.batch_digest);
    const other = await commit(socketPath, batchWith({ source: "other", batch_id: "1" }));
    assert.notEqual(other.batch_digest, one.batch_digest);
  }));

test("every invalid event is listed with its index, a code and a message", () =>
  withService(async ({ socketPath }) => {
    const events = [event({ stream: "A" }), event(), event({ record_key: "" }), event({ x: 1 })];
    const reply = await ingest(socketPath, batchWith({ events }));
    const { errors } = reply.json();
    assert.deepEqual(errors.map((fault: { index: number }) => fault.index), [0, 2, 3]);
    for (const { code, message } of errors) {
      assert.equal(code, "invalid_event");
      assert.ok(typeof message === "string" && message.length > 0);
    }
    assertError(reply, "invalid_events", { errors });
  }));

test("payloads are returned in canonical form with valid hashes; occurred_at is unchanged", () =>
  withService(async ({ socketPath }) => {
    const events = [
      '{"stream":"s","record_key":"1","kind":"k","payload":{"b":1e2,"a":"\\u00e9\\/","":[-0]}}',
      '{"stream":"s","record_key":"2","kind":"k","payload":0.10,' +
      '"occurred_at":"2024-02-29T23:59:59.120Z"}',
    ];
    await commit(socketPath, `{"source":"shop","batch_id":"b","events":[${events}]}`);
    const reply = await request(socketPath, { path: "/v1/events" });
    assert.ok(reply.text().includes('"payload":{"":[0],"a":"é/","b":100}'), reply.text());
    assert.ok(reply.text().includes('"occurred_at":"2024-02-29T23:59:59.120Z"'));
    for (const committed of reply.json().events) {
      const verified = await verifyEvent(committed);
      assert.deepEqual(Object.values(verified), Object.values(verified).map(() => true));
    }
    assert.ok(!("occurred_at" in reply.json().events[0]));
  }));

test("a batch of 10,000 events is accepted, and one more event gets 413", () =>
  withService(async ({ socketPath }) => {
    const events = Array.from({ length: BATCH_EVENTS_MAX }, () => event());
    assert.equal((await commit(socketPath, batchWith({ events }))).events, 10_000);
    const more = batchWith({ batch_id: "more", events: [...events, event()] });
    assertError(await ingest(socketPath, more), "body_too_large");
    assert.equal((await replayPage(socketPath, "limit=10001")).events.length, 10_000);
  }));

test("clients racing for one batch identity get one commit and the same receipt", () =>
  withService(async ({ socketPath }) => {
    const replies = await Promise.all(
      Array.from({ length: 16 }, () => ingest(socketPath, batchWith({}))),
    );
    const receipts = replies.map((reply) => reply.json());
    assert.equal(receipts.filter(({ status }) => status === "committed").length, 1);
    assert.equal(new Set(receipts.map(({ first_event_id }) => first_event_id)).size, 1);
    assert.equal((await allEvents(socketPath)).length, 1);
  }));
