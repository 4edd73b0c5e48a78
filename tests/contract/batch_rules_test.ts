/**
 * `POST /v1/events`: every rule for batches and events, the error code for violating it, and
 * whether the schema in `docs/openapi.yaml` has it.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "../support/tested_service.ts";
import {
  allEvents,
  batchWith,
  casesOf,
  commit,
  event,
  ingest,
  NO_EVENT_ID,
} from "./support/api.ts";
import { OpenApiDocument } from "./support/openapi.ts";
import { withService } from "./support/served.ts";

const DOCUMENT = new OpenApiDocument();
const SCHEMA = "#/components/schemas/Batch";

function withEvent(members: object): unknown {
  return batchWith({ events: [event(members)] });
}

/** A batch whose precondition has `members` overridden or added. */
function conditional(members: object): unknown {
  return batchWith({ stream_precondition: { ...PRECONDITION, ...members } });
}

/** A batch with a payload inserted verbatim. */
function spelled(payload: string): string {
  return JSON.stringify(batchWith({})).replace('"payload":null', `"payload":${payload}`);
}

function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}

const PRECONDITION = { stream: "orders", expected_frontier: null };

const REFUSED = casesOf<unknown>({
  invalid_request: {
    "a body is JSON": "{",
    "a body ends, however it begins": "[".repeat(1_000_000),
    "a body is one JSON value": `${JSON.stringify(batchWith({}))} 1`,
    "a body has no byte order mark": `\ufeff${JSON.stringify(batchWith({}))}`,
    "a body is UTF-8": Buffer.from(spelled('"\xff"'), "latin1"),
    "a body is not empty": "",
    "a body is an object": [batchWith({})],
    "a body is not null": "null",
    "a batch has no unknown member": batchWith({ mode: "upsert" }),
    "a batch has no member named like a method": batchWith({ constructor: 1 }),
    "a batch has no member __proto__": '{"__proto__":{},"batch_id":"b"}',
    "a batch needs batch_id": batchWith({ batch_id: undefined }),
    "a batch needs source": batchWith({ source: undefined }),
    "a batch needs events": batchWith({ events: undefined }),
    "batch_id is a string": batchWith({ batch_id: 1 }),
    "source is a string": batchWith({ source: null }),
    "events is an array": batchWith({ events: {} }),
    "v is a number": batchWith({ v: "1" }),
    "v is not null": batchWith({ v: null }),
    "stream_precondition is an object": batchWith({ stream_precondition: [] }),
    "stream_precondition is not null": batchWith({ stream_precondition: null }),
    "a member occurs once": '{"v":1,"v":1}',
    "a member occurs once, however escaped": '{"v":1,"\\u0076":1}',
    "a member of a payload occurs once": spelled('{"a":[{"b":1,"b":1}]}'),
    "strings contain no unpaired surrogate": spelled('"\\ud800"'),
    "numbers are finite": spelled("1e309"),
    "integers keep their precision": spelled("9007199254740993"),
  },
  invalid_batch: {
    "v is 1": batchWith({ v: 2 }),
    "v is not 0": batchWith({ v: 0 }),
    "v is an integer": batchWith({ v: 1.5 }),
    "batch_id is not empty": batchWith({ batch_id: "" }),
    "batch_id has at most 256 bytes": batchWith({ batch_id: "é".repeat(129) }),
    "batch_id is not reserved": batchWith({ batch_id: "service/1" }),
    "source matches its pattern": batchWith({ source: "Shop" }),
    "source does not begin with a dot": batchWith({ source: ".shop" }),
    "source is not empty": batchWith({ source: "" }),
    "source has at most 128 bytes": batchWith({ source: "a".repeat(129) }),
    "source is not system": batchWith({ source: "system" }),
    "events is not empty": batchWith({ events: [] }),
    "stream_precondition has no unknown member": conditional({ x: 1 }),
    "stream_precondition needs expected_frontier": conditional({ expected_frontier: undefined }),
    "stream_precondition needs stream": conditional({ stream: undefined }),
    "the stream of stream_precondition is a string": conditional({ stream: 1 }),
    "the stream of stream_precondition is a name": conditional({ stream: "Orders" }),
    "expected_frontier is a string or null": conditional({ expected_frontier: 1 }),
    "expected_frontier is an event id": conditional({ expected_frontier: "1" }),
    "expected_frontier is in lowercase": conditional({
      expected_frontier: NO_EVENT_ID.replace("8", "A"),
    }),
    "every event targets the stream of the precondition": batchWith({
      events: [event(), event({ stream: "items" })],
      stream_precondition: PRECONDITION,
    }),
  },
  invalid_events: {
    "an event is an object": batchWith({ events: [null] }),
    "an event has no unknown member": withEvent({ id: 1 }),
    "an event needs stream": withEvent({ stream: undefined }),
    "an event needs record_key": withEvent({ record_key: undefined }),
    "an event needs kind": withEvent({ kind: undefined }),
    "an event needs payload": withEvent({ payload: undefined }),
    "stream is a string": withEvent({ stream: 1 }),
    "stream matches its pattern": withEvent({ stream: "a b" }),
    "stream has at most 128 bytes": withEvent({ stream: "a".repeat(129) }),
    "record_key is not empty": withEvent({ record_key: "" }),
    "record_key has at most 1,024 bytes": withEvent({ record_key: "€".repeat(342) }),
    "kind is not empty": withEvent({ kind: "" }),
    "kind has at most 128 bytes": withEvent({ kind: "é".repeat(65) }),
    "occurred_at is a string": withEvent({ occurred_at: null }),
    "occurred_at ends in Z": withEvent({ occurred_at: "2026-01-01T00:00:00+00:00" }),
    "occurred_at is a valid date": withEvent({ occurred_at: "2026-02-29T00:00:00Z" }),
    "occurred_at is not a leap second": withEvent({ occurred_at: "2016-12-31T23:59:60Z" }),
    "occurred_at has at most 9 fractional digits": withEvent({
      occurred_at: "2026-01-01T00:00:00.1234567890Z",
    }),
    "a decimal point is followed by digits": withEvent({ occurred_at: "2026-01-01T00:00:00.Z" }),
    "a payload is nested at most 128 levels deep": spelled(nested(129)),
  },
});

/** Rules that the schema of a batch cannot express. */
const BEYOND_SCHEMA = [
  "batch_id has at most 256 bytes",
  "every event targets the stream of the precondition",
  "record_key has at most 1,024 bytes",
  "kind has at most 128 bytes",
];

for (const [code, rule, body] of REFUSED) {
  test(`${rule}, otherwise ${code}`, () =>
    withService(async ({ socketPath }) => {
      assert.equal(DOCUMENT.isValid(SCHEMA, body), BEYOND_SCHEMA.includes(rule));
      const reply = await ingest(socketPath, body);
      assert.deepEqual([reply.status, reply.json().error], [400, code], reply.text());
      assert.equal("errors" in reply.json(), code === "invalid_events" || isInEvent(rule));
      assert.deepEqual(await allEvents(socketPath), []);
      // A rejected batch leaves its identity unused.
      await commit(socketPath, batchWith({}));
    }));
}

/** Whether an error for violating this JSON rule names the event. */
function isInEvent(rule: string): boolean {
  return /^(a body is UTF-8|a member of a payload|strings|numbers|integers)/.test(rule);
}

const TAKEN: Array<[rule: string, body: unknown]> = [
  ["v may be 1", batchWith({ v: 1 })],
  [
    "batch_id may be any 256-byte string",
    batchWith({ batch_id: "\u0000 /é€" + "x".repeat(248) }),
  ],
  ["source may begin with a digit or underscore", batchWith({ source: "_0.a-b" })],
  ["source may have 128 bytes", batchWith({ source: "a".repeat(128) })],
  ["source may begin with system", batchWith({ source: "system.x" })],
  ["stream may have 128 bytes", withEvent({ stream: "9".repeat(128) })],
  ["record_key may be any 1,024-byte string", withEvent({ record_key: "€".repeat(341) + "\n" })],
  ["kind may be any 128-byte string", withEvent({ kind: "é".repeat(64) })],
  ["occurred_at may have no fraction", withEvent({ occurred_at: "0000-01-01T00:00:00Z" })],
  ["occurred_at may have 9 digits", withEvent({ occurred_at: "2024-02-29T23:59:59.123456789Z" })],
  ["a payload may be nested 128 levels deep", spelled(nested(128))],
  ["a payload may be a scalar", spelled('"text"')],
  ["a payload may contain any member names", spelled('{"__proto__":1,"constructor":{"":null}}')],
  ["a payload may contain a large integer that keeps its precision", spelled("9007199254740992")],
  ["a payload may contain a large number with a decimal point", spelled("18446744073709551617.0")],
  ["a payload may contain surrogate pairs", spelled('"\\ud83d\\ude00"')],
];

for (const [rule, body] of TAKEN) {
  test(`${rule}`, () =>
    withService(async ({ socketPath }) => {
      DOCUMENT.assertValid(SCHEMA, typeof body === "string" ? JSON.parse(body) : body);
      await commit(socketPath, body);
      assert.equal((await allEvents(socketPath)).length, 1);
    }));
}
