/** HTTP/1.1: persistent, pipelined, slow and aborted connections. */
import assert from "node:assert/strict";
import process from "node:process";
import { openDescriptors } from "../../bench/support/process_stats.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { RawConnection } from "../support/raw_client.ts";
import { allEvents, batchWith, commit, event, ingest } from "./support/api.ts";
import { withService } from "./support/served.ts";
import { get, HOST, post } from "./support/raw_requests.ts";
import { withServedLog } from "./support/served_log.ts";

const MIB = 1024 * 1024;

/** A request for each kind of response, and the expected status. */
const KINDS: Array<[bytes: string, status: number]> = [
  [post("/v1/events", batchWith({})), 200],
  [post("/v1/events", batchWith({})), 200],
  [post("/v1/events", batchWith({ events: [event({ kind: "deleted" })] })), 409],
  [post("/v1/events", "{"), 400],
  [post("/v1/events", "text", "Content-Type: text/plain\r\n"), 415],
  [get("/v1/events"), 200],
  [get("/v1/events?limit=0"), 400],
  [get("/v1/streams"), 200],
  [get("/v1/query"), 404],
  [`DELETE /v1/events HTTP/1.1\r\n${HOST}\r\n`, 405],
  [post("/v1/sources/retire", { source: "shop" }), 200],
  [post("/v1/sources/retire", { source: "none" }), 404],
  [post("/v1/sources/retire", { source: "system" }), 400],
];

test("pipelined requests, even mutations, get responses in order, all with the same headers", () =>
  withService(async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    const batches = Array.from({ length: 20 }, (_, n) => batchWith({ batch_id: `${n}` }));
    const requests = batches.flatMap((batch) => [post("/v1/events", batch), get("/v1/events")]);
    const follow = get("/v1/events?follow=true");
    await connection.write([...requests, ...KINDS.map(([bytes]) => bytes), follow].join(""));
    for (let n = 0; n < batches.length; n++) {
      assert.equal(JSON.parse((await connection.readResponse())!.body).status, "committed");
      const page = JSON.parse((await connection.readResponse())!.body);
      assert.equal(page.events.length, n + 1, "a read sees everything acknowledged before it");
    }
    for (const [bytes, status] of KINDS) {
      const response = await connection.readResponse();
      assert.equal(response?.status, status, bytes);
      const names = ["content-length", "content-type", "date", ...status === 405 ? ["allow"] : []];
      assert.deepEqual(Object.keys(response!.headers).sort(), names.sort());
      assert.equal(response!.headers["content-type"], "application/json");
    }
    await connection.readThrough("caught_up");
    connection.destroy();
  }));

test("a client that does not read its response delays no other client, and can read it later", () =>
  withService(async ({ socketPath }) => {
    const payload = "x".repeat(8 * MIB);
    await commit(socketPath, batchWith({ events: [event({ payload })] }));
    const slow = await RawConnection.open(socketPath);
    slow.pause();
    await slow.write(get("/v1/events"));
    for (let n = 0; n < 20; n++) await commit(socketPath, batchWith({ batch_id: `${n}` }));
    assert.equal((await allEvents(socketPath)).length, 21);
    slow.resume();
    const page = JSON.parse((await slow.readResponse())!.body);
    assert.deepEqual(page.events.map((e: { payload: unknown }) => e.payload), [payload]);
    slow.destroy();
  }));

test(
  "clients that disconnect at any point leak no descriptors and are not reported",
  { skip: openDescriptors(process.pid) === null && "/proc is not available" },
  () =>
    withServedLog(async ({ socketPath, reports }) => {
      const payload = "x".repeat(4 * MIB);
      await commit(socketPath, batchWith({ events: [event({ payload })] }));
      const body = post("/v1/events", batchWith({ batch_id: "gone" }));
      const sent = [
        "",
        "GET /v1/ev",
        body.slice(0, -10),
        body,
        body + get("/v1/events") + body,
        get("/v1/events"),
        get("/v1/events?follow=true"),
        `CONNECT a:1 HTTP/1.1\r\n${HOST}\r\n${"x".repeat(MIB / 8)}`,
      ];
      await request(socketPath, { path: "/v1/none" });
      const before = openDescriptors(process.pid)!;
      for (let n = 0; n < 10 * sent.length; n++) {
        const connection = await RawConnection.open(socketPath, sent[n % sent.length]!);
        if (n % 3 === 0) await request(socketPath, { path: "/v1/none" });
        connection.destroy();
      }
      while (openDescriptors(process.pid)! > before) {
        await request(socketPath, { path: "/v1/none" });
      }
      assert.deepEqual(reports, []);
      assert.equal((await ingest(socketPath, batchWith({ batch_id: "gone" }))).status, 200);
    }),
);
