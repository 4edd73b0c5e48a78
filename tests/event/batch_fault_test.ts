import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type EventFault } from "../../src/event/api_error.ts";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import { BATCH_DIGEST, EVENTS, IDENTITY } from "./support/worked_example.ts";
import { submittedEvents } from "../support/prepared.ts";

const EVENT = { stream: "s", record_key: "k", kind: "upserted", payload: {} };
const BATCH = { batch_id: "b", source: "a", events: [EVENT] };

function bodyOf(body: unknown): Uint8Array {
  return new TextEncoder().encode(typeof body === "string" ? body : JSON.stringify(body));
}

/** The error with which a body is rejected. */
function refusal(body: unknown): ApiError {
  try {
    prepareBatch(bodyOf(body));
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error(`accepted ${JSON.stringify(body).slice(0, 200)}`);
}

function eventFaults(body: unknown): EventFault[] {
  const error = refusal(body);
  assert.equal(error.code, "invalid_events", error.message);
  return error.context.errors as EventFault[];
}

test("prepareBatch() prepares the worked example", () => {
  const submitted = EVENTS.map(({ stream, recordKey, kind, occurredAt, payload }) => ({
    payload: JSON.parse(payload),
    kind,
    ...(occurredAt === undefined ? {} : { occurred_at: occurredAt }),
    record_key: recordKey,
    stream,
  }));
  const { source, batchId } = IDENTITY;
  const body = { v: 1, events: submitted, source, batch_id: batchId };
  const { events, ...batch } = prepareBatch(bodyOf(body));
  assert.deepEqual(batch, {
    source,
    batchId,
    batchDigest: BATCH_DIGEST,
    precondition: undefined,
    lineage: undefined,
  });
  assert.equal(events.count, EVENTS.length);
  assert.deepEqual(submittedEvents(prepareBatch(bodyOf(body))), EVENTS);
});

test("prepareBatch() lists every invalid event despite one that is nested too deeply", () => {
  const levels = 1_000_000;
  const deep = '{"a":'.repeat(levels) + "1" + "}".repeat(levels);
  const event = (payload: string) =>
    `{"stream":"s","record_key":"k","kind":"k","payload":${payload}}`;
  const faults = eventFaults(
    `{"batch_id":"b","source":"a","events":[${event(deep)},${event("1")},${event(deep)},{}]}`,
  );
  assert.deepEqual(faults.map((fault) => fault.index), [0, 2, 3]);
});

test("prepareBatch() throws an invalid_request that names the event containing a JSON error", () => {
  const body = (payload: string) =>
    `{"batch_id":"b","source":"a","events":[{"payload":1},{"payload":{"x":[${payload}]}}]}`;
  for (const payload of ["9007199254740993", "1e999", '"\\ud800"', '{"a":1,"\\u0061":2}', "nul"]) {
    const error = refusal(body(payload));
    assert.equal(error.code, "invalid_request", payload);
    const [fault, ...others] = error.context.errors as EventFault[];
    assert.deepEqual([fault!.index, fault!.code], [1, "invalid_event"], payload);
    assert.equal(others.length, 0);
  }
});

test("prepareBatch() reports the event, member and number that binary64 cannot represent", () => {
  const body = '{"events":[1,{"payload":{"total":9007199254740993}}]}';
  const message = "events[1].payload.total: 9007199254740993 is not how RFC 8785 writes its " +
    "binary64 value, 9007199254740992; send it as a string";
  const error = refusal(body);
  assert.equal(error.message, message);
  assert.deepEqual(error.context.errors, [{ index: 1, code: "invalid_event", message }]);
  const outside = refusal('{"v":1e999}');
  assert.equal(
    outside.message,
    "v: 1e999 is too large for a binary64 number; send it as a string",
  );
  assert.deepEqual(outside.context, {});
});

test("prepareBatch() reports the byte at which a body stops being JSON", () => {
  const error = refusal('{"source":"\u20ac","events":[{"kind":"a" "b"}]}');
  assert.equal(error.message, 'body is not valid JSON at byte 38: unexpected "\\""');
  assert.equal((error.context.errors as EventFault[])[0]!.index, 0);
});

test("prepareBatch() checks JSON before batch rules, and batch rules before events", () => {
  const badEvents = [{ ...EVENT, kind: "" }];
  const ranked: [body: unknown, code: string][] = [
    ['{"source":"system","events":[],"batch_id":"b","batch_id":"b"}', "invalid_request"],
    [{ ...BATCH, source: "system", v: 7, extra: 1 }, "invalid_request"],
    [{ ...BATCH, source: "system", events: new Array(10_001).fill(0) }, "body_too_large"],
    [{ ...BATCH, source: "system", events: badEvents }, "invalid_batch"],
    [{
      ...BATCH,
      events: [...badEvents, { ...EVENT, stream: "t" }],
      stream_precondition: { stream: "s", expected_frontier: null },
    }, "invalid_batch"],
    [{
      ...BATCH,
      events: [{ ...EVENT, stream: 1 }],
      stream_precondition: { stream: "s", expected_frontier: null },
    }, "invalid_events"],
    [
      { ...BATCH, events: [...badEvents, { ...EVENT, stream: "service.source_lineage" }] },
      "invalid_events",
    ],
  ];
  for (const [body, code] of ranked) assert.equal(refusal(body).code, code);
});

test("prepareBatch() quotes only a short part of a hostile body", () => {
  const name = "n".repeat(1_000_000);
  assert.ok(refusal({ ...BATCH, [name]: 1 }).message.length < 200);
  const [fault] = eventFaults({ ...BATCH, events: [{ ...EVENT, [name]: 1 }] });
  assert.ok(fault!.message.length < 200);
});
