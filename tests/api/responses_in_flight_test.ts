/** Memory for responses in flight: a response holds its share until it has been written. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHandler } from "../../src/api/handler.ts";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import type { HttpHandler, HttpResponse } from "../../src/http/message.ts";
import { RESPONSE_BYTES_MAX, RESPONSE_RESERVED_BYTES } from "../../src/limits.ts";
import { stubLog, stubReplay } from "../support/stub_log.ts";
import { stubRequest } from "../support/stub_request.ts";

const READS_MAX = RESPONSE_BYTES_MAX / RESPONSE_RESERVED_BYTES;
const FAULTY = { stream: "S", record_key: "k", kind: "u", payload: 1, ["x".repeat(60)]: 1 };
const FAULTY_BATCH = JSON.stringify({
  source: "a",
  batch_id: "b",
  events: new Array(10_000).fill(FAULTY),
});

function handlerOf(closed: () => void = () => {}): HttpHandler {
  const page = { v: 1 as const, streams: [], next_after: null, snapshot_through_event_id: null };
  return createHandler({
    log: stubLog({
      // deno-lint-ignore require-await -- faults must reject
      ingest: async (body) => assert.fail(prepareBatch(body).batchId),
      streams: () => Promise.resolve(page),
      replay: () => ({ ...stubReplay(["1"]), close: closed }),
    }),
    token: "",
    replay: { defaultLimit: 1, maxLimit: 1 },
    report: assert.fail,
  });
}

test("a read waits until the response of another has been written, unless it is short", async () => {
  const handler = handlerOf();
  const targets = ["/v1/streams?limit=1000", "/v1/events"];
  const responses: HttpResponse[] = [];
  while (responses.length < READS_MAX) {
    responses.push(await handler(stubRequest({ target: targets[responses.length % 2]! })));
  }
  assert.equal((await handler(stubRequest({ target: "/v1/streams" }))).status, 200);
  const waiting = handler(stubRequest({ target: "/v1/streams?limit=1000" }));
  const first = await Promise.race([waiting, new Promise((resolve) => setImmediate(resolve))]);
  assert.equal(first, undefined, "it waits");
  responses[0]!.onEnd!();
  assert.equal((await waiting).status, 200);
});

test("a replay is closed when its response has been written", async () => {
  let closed = 0;
  const response = await handlerOf(() => closed += 1)(stubRequest());
  assert.equal(closed, 0);
  response.onEnd!();
  assert.equal(closed, 1);
});

test("an error document that finds no memory is replaced by a 429", async () => {
  const handler = handlerOf();
  const post = async () => {
    const bodyBytes = FAULTY_BATCH.length;
    return await handler(stubRequest({ method: "POST", bodyBytes, pieces: [FAULTY_BATCH] }));
  };
  const documents: HttpResponse[] = [];
  let response = await post();
  for (; response.status === 400; response = await post()) documents.push(response);
  assert.equal(response.status, 429);
  const bytes = documents.reduce((sum, { body }) => sum + (body as string).length, 0);
  assert.ok(bytes <= RESPONSE_BYTES_MAX);
  documents[0]!.onEnd!();
  assert.equal((await post()).status, 400);
});
