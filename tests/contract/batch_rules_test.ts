/** `POST /v1/events`: every rule of a batch and of its events, and the code of its breach. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { ErrorCode } from "../../src/event/api_error.ts";
import { test } from "../support/tested_service.ts";
import { allEvents, batchWith, commit, event, ingest, NO_EVENT_ID } from "./support/api.ts";
import { withService } from "./support/served.ts";

function withEvent(members: object): unknown {
  return batchWith({ events: [event(members)] });
}

/** A batch without one of its members. */
function without(name: string): unknown {
  const { [name]: _left, ...rest } = batchWith({}) as unknown as Record<string, unknown>;
  return rest;
}

function eventWithout(name: string): unknown {
  const { [name]: _left, ...rest } = event() as unknown as Record<string, unknown>;
  return batchWith({ events: [rest] });
}

/** A batch with a payload as it is spelled. */
function spelled(payload: string): string {
  return JSON.stringify(batchWith({})).replace('"payload":null', `"payload":${payload}`);
}

function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

const PRECONDITION = { stream: "orders", expected_frontier: null };

const REFUSED: Array<[rule: string, code: ErrorCode, body: unknown]> = [
  ["a body is JSON", "invalid_request", "{"],
  ["a body is one JSON value", "invalid_request", `${JSON.stringify(batchWith({}))} 1`],
  ["a body has no byte order mark", "invalid_request", `\ufeff${JSON.stringify(batchWith({}))}`],
  ["a body is UTF-8", "invalid_request", Buffer.from(spelled('"\xff"'), "latin1")],
  ["a body is not empty", "invalid_request", ""],
  ["a body is an object", "invalid_request", [batchWith({})]],
  ["a body is not null", "invalid_request", "null"],
  ["a batch has no unknown member", "invalid_request", batchWith({ mode: "upsert" })],
  ["a batch has no member of a method's name", "invalid_request", batchWith({ constructor: 1 })],
  ["a batch has no member __proto__", "invalid_request", '{"__proto__":{},"batch_id":"b"}'],
  ["a batch needs batch_id", "invalid_request", without("batch_id")],
  ["a batch needs source", "invalid_request", without("source")],
  ["a batch needs events", "invalid_request", without("events")],
  ["batch_id is a string", "invalid_request", batchWith({ batch_id: 1 })],
  ["source is a string", "invalid_request", batchWith({ source: null })],
  ["events is an array", "invalid_request", batchWith({ events: {} })],
  ["v is a number", "invalid_request", batchWith({ v: "1" })],
  ["v is not null", "invalid_request", batchWith({ v: null })],
  ["stream_precondition is an object", "invalid_request", batchWith({ stream_precondition: [] })],
  ["stream_precondition is not null", "invalid_request", batchWith({ stream_precondition: null })],
  ["a member comes once", "invalid_request", '{"v":1,"v":1}'],
  ["a member comes once, however spelled", "invalid_request", '{"v":1,"\\u0076":1}'],
  ["a member of a payload comes once", "invalid_request", spelled('{"a":[{"b":1,"b":1}]}')],
  ["strings hold no unpaired surrogate", "invalid_request", spelled('"\\ud800"')],
  ["numbers are finite", "invalid_request", spelled("1e309")],
  ["integers keep their precision", "invalid_request", spelled("9007199254740993")],
  ["v is 1", "invalid_batch", batchWith({ v: 2 })],
  ["v is not 0", "invalid_batch", batchWith({ v: 0 })],
  ["v is an integer", "invalid_batch", batchWith({ v: 1.5 })],
  ["batch_id is not empty", "invalid_batch", batchWith({ batch_id: "" })],
  ["batch_id has at most 256 bytes", "invalid_batch", batchWith({ batch_id: "é".repeat(129) })],
  ["batch_id is not reserved", "invalid_batch", batchWith({ batch_id: "service/1" })],
  ["source matches its pattern", "invalid_batch", batchWith({ source: "Shop" })],
  ["source does not begin with a dot", "invalid_batch", batchWith({ source: ".shop" })],
  ["source is not empty", "invalid_batch", batchWith({ source: "" })],
  ["source has at most 128 bytes", "invalid_batch", batchWith({ source: "a".repeat(129) })],
  ["source is not system", "invalid_batch", batchWith({ source: "system" })],
  ["events is not empty", "invalid_batch", batchWith({ events: [] })],
  [
    "stream_precondition is closed",
    "invalid_batch",
    batchWith({ stream_precondition: { ...PRECONDITION, x: 1 } }),
  ],
  [
    "stream_precondition needs expected_frontier",
    "invalid_batch",
    batchWith({ stream_precondition: { stream: "orders" } }),
  ],
  [
    "stream_precondition needs stream",
    "invalid_batch",
    batchWith({ stream_precondition: { expected_frontier: null } }),
  ],
  [
    "the stream of stream_precondition is a string",
    "invalid_batch",
    batchWith({ stream_precondition: { ...PRECONDITION, stream: 1 } }),
  ],
  [
    "the stream of stream_precondition is a name",
    "invalid_batch",
    batchWith({ stream_precondition: { ...PRECONDITION, stream: "Orders" } }),
  ],
  [
    "expected_frontier is a string or null",
    "invalid_batch",
    batchWith({ stream_precondition: { ...PRECONDITION, expected_frontier: 1 } }),
  ],
  [
    "expected_frontier is an event id",
    "invalid_batch",
    batchWith({ stream_precondition: { stream: "orders", expected_frontier: "1" } }),
  ],
  [
    "expected_frontier is in lowercase",
    "invalid_batch",
    batchWith({
      stream_precondition: { stream: "orders", expected_frontier: NO_EVENT_ID.replace("8", "A") },
    }),
  ],
  [
    "every event targets the stream of the precondition",
    "invalid_batch",
    batchWith({
      events: [event(), event({ stream: "items" })],
      stream_precondition: PRECONDITION,
    }),
  ],
  ["an event is an object", "invalid_events", batchWith({ events: [null] })],
  ["an event has no unknown member", "invalid_events", withEvent({ id: 1 })],
  ["an event needs stream", "invalid_events", eventWithout("stream")],
  ["an event needs record_key", "invalid_events", eventWithout("record_key")],
  ["an event needs kind", "invalid_events", eventWithout("kind")],
  ["an event needs payload", "invalid_events", eventWithout("payload")],
  ["stream is a string", "invalid_events", withEvent({ stream: 1 })],
  ["stream matches its pattern", "invalid_events", withEvent({ stream: "a b" })],
  ["stream has at most 128 bytes", "invalid_events", withEvent({ stream: "a".repeat(129) })],
  ["record_key is not empty", "invalid_events", withEvent({ record_key: "" })],
  [
    "record_key has at most 1,024 bytes",
    "invalid_events",
    withEvent({ record_key: "€".repeat(342) }),
  ],
  ["kind is not empty", "invalid_events", withEvent({ kind: "" })],
  ["kind has at most 128 bytes", "invalid_events", withEvent({ kind: "é".repeat(65) })],
  ["occurred_at is a string", "invalid_events", withEvent({ occurred_at: null })],
  [
    "occurred_at ends in Z",
    "invalid_events",
    withEvent({ occurred_at: "2026-01-01T00:00:00+00:00" }),
  ],
  [
    "occurred_at is a valid date",
    "invalid_events",
    withEvent({ occurred_at: "2026-02-29T00:00:00Z" }),
  ],
  [
    "occurred_at is no leap second",
    "invalid_events",
    withEvent({ occurred_at: "2016-12-31T23:59:60Z" }),
  ],
  [
    "occurred_at has at most 9 digits of fraction",
    "invalid_events",
    withEvent({ occurred_at: "2026-01-01T00:00:00.1234567890Z" }),
  ],
  [
    "a decimal point is followed by digits",
    "invalid_events",
    withEvent({ occurred_at: "2026-01-01T00:00:00.Z" }),
  ],
  ["a payload nests at most 128 containers", "invalid_events", spelled(nested(129))],
];

for (const [rule, code, body] of REFUSED) {
  test(`${rule}: else ${code}`, () =>
    withService(async ({ socketPath }) => {
      const reply = await ingest(socketPath, body);
      assert.deepEqual([reply.status, reply.json().error], [400, code], reply.text());
      assert.equal("errors" in reply.json(), code === "invalid_events" || isInEvent(rule));
      assert.deepEqual(await allEvents(socketPath), []);
    }));
}

/** Faults of JSON that lie inside an event name it. */
function isInEvent(rule: string): boolean {
  return /^(a body is UTF-8|a member of a payload|strings|numbers|integers)/.test(rule);
}

const TAKEN: Array<[rule: string, body: unknown]> = [
  ["v may be 1", batchWith({ v: 1 })],
  [
    "batch_id may be any text of 256 bytes",
    batchWith({ batch_id: "\u0000 /é€" + "x".repeat(248) }),
  ],
  ["source may begin with a digit or underscore", batchWith({ source: "_0.a-b" })],
  ["source may have 128 bytes", batchWith({ source: "a".repeat(128) })],
  ["source may begin with system", batchWith({ source: "system.x" })],
  ["stream may have 128 bytes", withEvent({ stream: "9".repeat(128) })],
  ["record_key may be any text of 1,024 bytes", withEvent({ record_key: "€".repeat(341) + "\n" })],
  ["kind may be any text of 128 bytes", withEvent({ kind: "é".repeat(64) })],
  ["occurred_at may have no fraction", withEvent({ occurred_at: "0000-01-01T00:00:00Z" })],
  ["occurred_at may have 9 digits", withEvent({ occurred_at: "2024-02-29T23:59:59.123456789Z" })],
  ["a payload may nest 128 containers", spelled(nested(128))],
  ["a payload may be a scalar", spelled('"text"')],
  ["a payload may have any member names", spelled('{"__proto__":1,"constructor":{"":null}}')],
  ["a payload may have a large integer that keeps its precision", spelled("9007199254740992")],
  ["a payload may have a large real", spelled("18446744073709551617.0")],
  ["a payload may have surrogate pairs", spelled('"\\ud83d\\ude00"')],
];

for (const [rule, body] of TAKEN) {
  test(`${rule}`, () =>
    withService(async ({ socketPath }) => {
      await commit(socketPath, body);
      assert.equal((await allEvents(socketPath)).length, 1);
    }));
}
