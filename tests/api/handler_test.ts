/** The handler without a server: order of checks, and errors. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../src/event/api_error.ts";
import { createHandler, type HandlerOptions } from "../../src/api/handler.ts";
import type { HttpRequest } from "../../src/http/message.ts";
import { INGEST_BODY_BYTES_MAX } from "../../src/limits.ts";
import { Admission } from "../../src/service/admission.ts";
import type { EventLog } from "../../src/service/event_log.ts";
import { batch } from "../support/batches.ts";
import { stubLog, stubReplay } from "../support/stub_log.ts";
import { stubRequest } from "../support/stub_request.ts";
import { BODY_ROOM_STEP_BYTES } from "../../src/api/request_body.ts";

const BODY = JSON.stringify(batch("b1"));
const RECEIPT = {
  status: "committed" as const,
  batch_digest: "d",
  events: 1,
  first_event_id: "a",
  last_event_id: "a",
};

function api(log: Partial<EventLog>, options: Partial<HandlerOptions> = {}) {
  const reports: string[] = [];
  const handler = createHandler({
    log: stubLog(log),
    token: "",
    replay: { defaultLimit: 10, maxLimit: 100 },
    admission: new Admission(),
    report: (line) => void reports.push(line),
    ...options,
  });
  const answer = async (request: HttpRequest) => {
    const { status, headers, body } = await handler(request);
    return { status, headers, document: body === null ? null : JSON.parse(String(body)) };
  };
  return { answer, reports };
}

/** A request with every fault; each case removes the first one. */
const FAULTS = {
  method: "DELETE",
  target: "/v2?follow=maybe&x=1",
  headers: {
    "content-type": "text/plain",
    "content-length": String(INGEST_BODY_BYTES_MAX + 1),
    "transfer-encoding": "",
  },
};
const AUTHORIZATION = { authorization: "Bearer s3cret" };

const ORDER: Array<[code: string, request: Parameters<typeof stubRequest>[0]]> = [
  ["unauthorized", { ...FAULTS }],
  ["not_found", { ...FAULTS, headers: AUTHORIZATION }],
  ["method_not_allowed", { method: "DELETE", target: "/v1/events?x=1", headers: AUTHORIZATION }],
  [
    "invalid_request",
    {
      method: "POST",
      target: "/v1/events?x=1",
      headers: { ...AUTHORIZATION, "content-type": "text/plain" },
    },
  ],
  [
    "unsupported_media_type",
    {
      method: "POST",
      headers: {
        ...AUTHORIZATION,
        "content-type": "text/plain",
        "content-length": String(INGEST_BODY_BYTES_MAX + 1),
      },
    },
  ],
  [
    "body_too_large",
    {
      method: "POST",
      headers: { ...AUTHORIZATION, "content-length": String(INGEST_BODY_BYTES_MAX + 1) },
    },
  ],
  ["overloaded", { method: "POST", headers: { ...AUTHORIZATION, "content-length": "1" } }],
];

for (const [code, options] of ORDER) {
  test(`createHandler() checks in order: ${code}`, async () => {
    const admission = new Admission({ waitersMax: 0, totalBytes: 2, bodyBytes: 1 });
    admission.admit(1);
    const { answer } = api({}, { token: "s3cret", admission });
    assert.equal((await answer(stubRequest(options))).document.error, code);
  });
}

test("createHandler() answers a committed batch with its receipt", async () => {
  const { answer } = api({ append: () => Promise.resolve(RECEIPT) });
  const headers = { "content-length": String(BODY.length) };
  const response = await answer(stubRequest({ method: "POST", headers, pieces: [BODY] }));
  assert.deepEqual(response, {
    status: 200,
    headers: { "content-type": "application/json" },
    document: RECEIPT,
  });
});

test("createHandler() returns an error document with code, message and context", async () => {
  const error = new ApiError("batch_id_conflict", "taken", { source: "shop", batch_id: "b1" });
  const { answer, reports } = api({ append: () => Promise.reject(error) });
  const headers = { "content-length": String(BODY.length) };
  const response = await answer(stubRequest({ method: "POST", headers, pieces: [BODY] }));
  assert.equal(response.status, 409);
  assert.deepEqual(response.document, {
    error: "batch_id_conflict",
    message: "taken",
    source: "shop",
    batch_id: "b1",
  });
  assert.deepEqual(reports, []);
});

test("createHandler() answers 500 to an unexpected error and reports one line without values", async () => {
  const append = () => Promise.resolve(JSON.parse('{"s3cret-payload"}'));
  const { answer, reports } = api({ append }, { token: "s3cret" });
  const headers = { ...AUTHORIZATION, "content-length": String(BODY.length) };
  const target = "/v1/events?";
  const response = await answer(stubRequest({ method: "POST", target, headers, pieces: [BODY] }));
  assert.equal(response.status, 500);
  assert.equal(response.document.error, "internal_error");
  assert.equal(reports.length, 1);
  assert.match(reports[0]!, /^POST \/v1\/events failed: SyntaxError/);
  assert.doesNotMatch(reports[0]!, /s3cret|\n/);
});

test("createHandler() answers 500 when the first piece of a replay cannot be read", async () => {
  const { answer, reports } = api({ replay: () => stubReplay([new Error("EIO")]) });
  const response = await answer(stubRequest({ target: "/v1/events?record_key=s3cret" }));
  assert.equal(response.document.error, "internal_error");
  assert.match(reports.join("\n"), /^GET \/v1\/events failed: Error: EIO \(.+\)$/);
});

test("createHandler() answers HEAD with the headers of GET and the length of its body", async () => {
  const { answer } = api({ replay: () => stubReplay(["1,2"]) });
  const get = await answer(stubRequest());
  const head = await answer(stubRequest({ method: "HEAD" }));
  assert.equal(head.document, null);
  assert.deepEqual(head.headers, {
    ...get.headers,
    "content-length": String(JSON.stringify(get.document).length),
  });
});

test("createHandler() has no other path", async () => {
  for (const target of ["/v1/query", "/v1/catalog", "/v1/imports", "/", "*"]) {
    const { status, document } = await api({}).answer(stubRequest({ method: "POST", target }));
    assert.deepEqual([status, document.error], [404, "not_found"], target);
  }
});

test("createHandler() compares methods exactly", async () => {
  for (const method of ["TRACE", "get", "BREW"]) {
    const { status, headers } = await api({}).answer(stubRequest({ method }));
    assert.deepEqual([status, headers.allow], [405, "GET, HEAD, POST"], method);
  }
});

test("createHandler() accepts a chunked body, and releases its room afterwards", async () => {
  const admission = new Admission();
  let heldBytes = 0;
  const append = () => {
    heldBytes = admission.heldBytes;
    return Promise.resolve(RECEIPT);
  };
  const { answer } = api({ append }, { admission });
  const headers = { "transfer-encoding": "chunked" };
  const pieces = [BODY.slice(0, 10), BODY.slice(10)];
  const response = await answer(stubRequest({ method: "POST", headers, pieces }));
  assert.equal(response.status, 200);
  assert.equal(heldBytes, BODY_ROOM_STEP_BYTES);
  assert.equal(admission.heldBytes, 0);
});

test("createHandler() refuses a chunked body at its limit", async () => {
  const admission = new Admission();
  let piecesRead = 0;
  function* endless() {
    for (;; piecesRead++) yield new Uint8Array(1024 * 1024);
  }
  const { answer } = api({}, { admission });
  const headers = { "transfer-encoding": "chunked" };
  const response = await answer(stubRequest({ method: "POST", headers, pieces: endless() }));
  assert.deepEqual([response.status, response.document.error], [413, "body_too_large"]);
  assert.equal(piecesRead, INGEST_BODY_BYTES_MAX / (1024 * 1024));
  assert.equal(admission.heldBytes, 0);
});

test("createHandler() admits a large body only as it arrives", async () => {
  const admission = new Admission();
  const heldBytes: number[] = [];
  function* pieces() {
    for (let i = 0; i < 4; i++) {
      heldBytes.push(admission.heldBytes);
      yield new Uint8Array(BODY_ROOM_STEP_BYTES);
    }
  }
  const { answer } = api({}, { admission });
  const headers = { "content-length": String(INGEST_BODY_BYTES_MAX) };
  await answer(stubRequest({ method: "POST", headers, pieces: pieces() }));
  const step = BODY_ROOM_STEP_BYTES;
  assert.deepEqual(heldBytes, [step, step, 3 * step, 3 * step]);
});

test("createHandler() answers 429 with Retry-After when there is no room", async () => {
  const admission = new Admission({ admitWaitMs: 1, totalBytes: 8 * INGEST_BODY_BYTES_MAX });
  admission.admit(2 * INGEST_BODY_BYTES_MAX);
  for (let held = 0; held < 5; held++) admission.admit(INGEST_BODY_BYTES_MAX);
  const { answer } = api({}, { admission });
  const headers = { "content-length": "10" };
  const response = await answer(stubRequest({ method: "POST", headers }));
  assert.deepEqual([response.status, response.document.error], [429, "overloaded"]);
  assert.match(response.headers["retry-after"]!, /^[1-9][0-9]*$/);
});
