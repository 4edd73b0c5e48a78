/** Statuses and codes common to all routes: unknown routes, failures and precedence. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { ErrorCode } from "../../src/event/api_error.ts";
import { INGEST_BODY_BYTES_MAX } from "../../src/limits.ts";
import { Admission } from "../../src/service/admission.ts";
import { test } from "../support/tested_service.ts";
import { type HttpReply, request, type RequestOptions } from "../support/http_client.ts";
import { exchange } from "../support/raw_client.ts";
import { failNth, noRoomAfter } from "../support/storage_faults.ts";
import { stubLog } from "../support/stub_log.ts";
import {
  allEvents,
  assertError,
  batchWith,
  commit,
  ingest,
  postRetirement,
  retire,
  streamsPage,
} from "./support/api.ts";
import { get } from "./support/raw_requests.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

const ROUTES: Array<[path: string, methods: string[]]> = [
  ["/v1/events", ["GET", "HEAD", "POST"]],
  ["/v1/streams", ["GET", "HEAD"]],
  ["/v1/sources/retire", ["POST"]],
];
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];

for (const [path, allowed] of ROUTES) {
  test(`${path} accepts ${allowed.join(", ")}; other methods get 405 with Allow`, () =>
    withService(async ({ socketPath }) => {
      for (const method of METHODS.filter((method) => !allowed.includes(method))) {
        const reply = await request(socketPath, { path, method });
        assert.equal(reply.status, 405, method);
        assert.equal(reply.headers.allow, allowed.join(", "), method);
        if (method === "HEAD") assert.equal(reply.body.length, 0);
        else assertError(reply, "method_not_allowed");
      }
    }));
}

/** Paths whose GET responses cover several statuses. */
const HEADS = [
  ...["/v1/events", "/v1/events?follow=true&limit=0", "/v1/query"],
  ...["/v1/streams", "/v1/streams?source=shop", "/v1/streams?limit=0"],
];

for (const path of HEADS) {
  test(`HEAD returns the status and headers of GET without a body: ${path}`, () =>
    withService(async ({ socketPath }) => {
      await commit(socketPath, batchWith({}));
      const [get, head] = await Promise.all([
        request(socketPath, { path }),
        request(socketPath, { path, method: "HEAD" }),
      ]);
      assert.equal(head.status, get.status);
      assert.deepEqual({ ...head.headers, date: "" }, { ...get.headers, date: "" });
      assert.equal(head.headers["content-length"], String(get.body.length));
      assert.equal(head.body.length, 0);
    }));
}

const EVERY_ROUTE: RequestOptions[] = [
  { path: "/v1/events" },
  { path: "/v1/events?follow=true" },
  { path: "/v1/events", method: "HEAD" },
  { path: "/v1/events", body: batchWith({}) },
  { path: "/v1/streams" },
  { path: "/v1/sources/retire", body: { source: "shop" } },
  { path: "/v1/query" },
];

/** Values of `Authorization` without the token. */
const WRONG = [
  ...["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cres", "Bearer t3cret"],
  ...["Bearer s3cret2", "Bearer S3cret"],
  ...["Bearer\ts3cret", "Bearer s3cret, Bearer s3cret", "Basic s3cret", "s3cret"],
];

test("every request without the token gets 401", async () => {
  await withService(async ({ socketPath }) => {
    for (const options of EVERY_ROUTE) {
      for (const headers of [{}, ...WRONG.map((authorization) => ({ authorization }))]) {
        const reply = await request(socketPath, { ...options, headers });
        assert.equal(reply.status, 401);
        assert.equal(reply.headers["www-authenticate"], "Bearer");
        if (options.method === "HEAD") continue;
        const message = assertError(reply, "unauthorized");
        assert.ok(!message.includes("s3cre"));
      }
    }
  }, { token: "s3cret" });
});

test("a token is compared as UTF-8 bytes, and a second Authorization header gets 401", () =>
  withServedLog(async ({ socketPath }) => {
    const header = "Authorization: bEARER   cl\u00c3\u00a9\r\n";
    for (const [headers, status] of [[header, 200], [header + header, 401]] as const) {
      const bytes = Buffer.from(get("/v1/events", headers), "latin1");
      assert.equal((await exchange(socketPath, bytes))?.status, status);
    }
  }, { handler: { token: "clé" } }));

test("errors take precedence: token, path, method, query, media type, length, memory", async () => {
  const admission = new Admission({ waitersMax: 0, totalBytes: 2, bodyBytes: 1 });
  admission.admit(1);
  await withServedLog(async ({ socketPath }) => {
    const text = "Content-Type: text/plain\r\n";
    const long = `Content-Length: ${INGEST_BODY_BYTES_MAX + 1}\r\n`;
    const token = "Authorization: Bearer s3cret\r\n";
    const steps: Array<[line: string, headers: string, code: ErrorCode]> = [
      ["DELETE /v2?x", text + long, "unauthorized"],
      ["DELETE /v2?x", token + text + long, "not_found"],
      ["DELETE /v1/events?x", token + text + long, "method_not_allowed"],
      ["POST /v1/events?x", token + text + long, "invalid_request"],
      ["POST /v1/events", token + text + long, "unsupported_media_type"],
      ["POST /v1/events", `${token}Content-Encoding: br\r\n${long}`, "unsupported_media_type"],
      ["POST /v1/events", token + long, "body_too_large"],
      ["POST /v1/events", `${token}Content-Length: 1\r\n`, "overloaded"],
    ];
    for (const [line, headers, code] of steps) {
      const bytes = `${line} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`;
      const response = await exchange(socketPath, bytes);
      assert.equal(JSON.parse(response!.body).error, code);
    }
  }, { handler: { token: "s3cret", admission } });
});

test("a full disk gives 500 storage_full, nothing is written, and a retry can succeed", () =>
  withServedLog(async ({ socketPath, storage }) => {
    await commit(socketPath, batchWith({ batch_id: "1" }));
    storage.hook = noRoomAfter(600);
    assertError(await ingest(socketPath, batchWith({ batch_id: "2" })), "storage_full");
    const repeated = await ingest(socketPath, batchWith({ batch_id: "1" }));
    assert.equal(repeated.json().status, "duplicate");
    assertError(await postRetirement(socketPath, { source: "shop" }), "storage_full");
    assert.equal((await allEvents(socketPath)).length, 1);
    storage.hook = null;
    await commit(socketPath, batchWith({ batch_id: "2" }));
    assert.equal((await retire(socketPath, "shop")).status, "retired");
  }));

/** Every response tells whether the writer has stopped. */
async function assertWriterState(socketPath: string, state: string | undefined): Promise<void> {
  for (const path of ["/v1/streams", "/v1/events", "/v1/events?limit=0", "/none"]) {
    for (const method of ["GET", "HEAD", "PUT"]) {
      const { headers } = await request(socketPath, { method, path });
      assert.equal(headers["writer-state"], state, `${method} ${path}`);
    }
  }
  for (const path of ["/v1/events", "/v1/sources/retire"]) {
    const { headers } = await request(socketPath, { method: "POST", path, body: "{" });
    assert.equal(headers["writer-state"], state, path);
  }
}

test("every response tells that the writer has stopped because its files are gone", () =>
  withServedLog(async ({ socketPath, storage, service }) => {
    await commit(socketPath, batchWith({}));
    await assertWriterState(socketPath, undefined);
    await storage.remove("tail.ndjson");
    assert.notEqual(await service.findLoss(), null);
    await assertWriterState(socketPath, "poisoned");
    const refused = await ingest(socketPath, batchWith({ batch_id: "2" }));
    assertError(refused, "writer_poisoned");
    assert.equal(refused.headers["writer-state"], "poisoned");
  }));

/** Mutations of which a failed fsync leaves it unknown whether they are stored. */
const UNCERTAIN: [what: string, send: (socketPath: string) => Promise<HttpReply>][] = [
  ["batch", (socketPath) => ingest(socketPath, batchWith({ batch_id: "2" }))],
  ["retirement", (socketPath) => postRetirement(socketPath, { source: "shop" })],
];

for (const [what, send] of UNCERTAIN) {
  test(`an uncertain ${what} stops mutations with 503 until a restart; reads continue`, () =>
    withServedLog(async ({ socketPath, storage, shutDown }) => {
      const first = batchWith({ batch_id: "1" });
      await commit(socketPath, first);
      storage.hook = failNth("sync", 1, { errno: "EIO" });
      const failed = await send(socketPath);
      assertError(failed, "writer_poisoned");
      assert.equal(failed.headers["writer-state"], "poisoned");
      storage.hook = null;
      const mutations = [
        ingest(socketPath, batchWith({ batch_id: "3" })),
        ingest(socketPath, first),
        postRetirement(socketPath, { source: "shop" }),
      ];
      for (const reply of await Promise.all(mutations)) assertError(reply, "writer_poisoned");
      assertError(await ingest(socketPath, "{"), "invalid_request");
      assert.equal((await allEvents(socketPath)).length, 1);
      assert.equal((await streamsPage(socketPath)).streams[0]!.event_count, 1);
      await assertWriterState(socketPath, "poisoned");
      await shutDown();
      await withServedLog(async (restarted) => {
        const retried = await send(restarted.socketPath);
        assert.equal(retried.status, 200);
        assert.equal(retried.headers["writer-state"], undefined);
        assert.equal((await allEvents(restarted.socketPath)).length, 2);
      }, { storage });
    }));
}

test("an unreadable log gives 500 internal_error, reported without request values", () =>
  withServedLog(async (before) => {
    const { last_event_id } = await commit(before.socketPath, batchWith({}));
    await before.shutDown();
    await withServedLog(async ({ socketPath, storage, reports }) => {
      storage.hook = failNth("read", 1, { errno: "EIO" });
      assertError(await request(socketPath, { path: "/v1/events?kind=k3y" }), "internal_error");
      storage.hook = failNth("read", 1, { errno: "EIO" });
      const anchored = `through=${last_event_id}`;
      const path = `/v1/streams?${anchored}`;
      assertError(await request(socketPath, { path }), "internal_error");
      storage.hook = null;
      await commit(socketPath, batchWith({ batch_id: "2" }));
      assert.equal((await allEvents(socketPath)).length, 2);
      assert.equal((await streamsPage(socketPath, anchored)).streams[0]!.event_count, 1);
      assert.equal(reports.length, 2);
      for (const line of reports) assert.match(line, /^GET \/v1\/(events|streams) failed: /);
      assert.ok(!reports.join().includes("k3y"));
    }, { storage: before.storage });
  }));

test("a bug in a mutation gives 500 internal_error, reported without request values", async () => {
  // Syntax error messages quote their input.
  const parse = () => Promise.resolve(JSON.parse('{"s3cret-payload"}'));
  const log = stubLog({ ingest: parse, retire: parse });
  await withServedLog(async ({ socketPath, reports }) => {
    assertError(await ingest(socketPath, batchWith({})), "internal_error");
    assertError(await postRetirement(socketPath, { source: "shop" }), "internal_error");
    assert.equal(reports.length, 2);
    assert.match(reports[0]!, /^POST \/v1\/events failed: SyntaxError/);
    for (const line of reports) assert.doesNotMatch(line, /s3cret|\n/);
  }, { log: () => log });
});
