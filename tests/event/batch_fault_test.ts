import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type EventFault } from "../../src/event/api_error.ts";
import { prepareBatch } from "../../src/event/batch_reader.ts";

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
  const cases: [payload: string, message: RegExp][] = [
    ["9007199254740993", /^events\[1\]\.payload\.x\[0\]: 9007199254740993 is not .* as a string$/],
    ["1e999", /^events\[1\]\.payload\.x\[0\]: 1e999 is too large/],
    ['"\\ud800"', /unpaired surrogate/],
    ['{"a":1,"\\u0061":2}', /member "a" appears twice$/],
    ["nul", /^body is not valid JSON at byte 70: unexpected/],
  ];
  for (const [payload, message] of cases) {
    const error = refusal(body(payload));
    assert.equal(error.code, "invalid_request", payload);
    assert.match(error.message, message);
    const faults = error.context.errors as EventFault[];
    assert.deepEqual(faults.map(({ index, code }) => [index, code]), [[1, "invalid_event"]]);
  }
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
