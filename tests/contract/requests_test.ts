/** Rules common to all requests, tested over a socket. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { INGEST_BODY_BYTES_MAX } from "../../src/limits.ts";
import { batch } from "../support/batches.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { exchange, RawConnection } from "../support/raw_client.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

const HOST = "Host: localhost\r\n";

const TARGETS: Array<[target: string, status: number]> = [
  ["/v1/events", 200],
  ["/v1/events?", 200],
  ["/v1/events?kind=b?c", 200],
  ["http://localhost/v1/events", 200],
  ["HTTP://other:80/v1/events?limit=1", 200],
  ["HTTPS://user@host:80/v1/events", 200],
  ["ftp://localhost/v1/events", 404],
  ["http://localhost", 404],
  ["http://localhost?limit=1", 404],
  ["//v1/events", 404],
  ["/v1/events/", 404],
  ["/v1//events", 404],
  ["/v1/%65vents", 404],
  ["/v1/x/../events", 404],
  ["/v1/./events", 404],
  ["/v1/events;a=b", 404],
  ["/v1/events#part", 404],
  ["/V1/EVENTS", 404],
];

test("a request target is a path or an absolute URI, compared byte by byte", () =>
  withService(async ({ socketPath }) => {
    for (const [target, status] of TARGETS) {
      const bytes = `GET ${target} HTTP/1.1\r\n${HOST}\r\n`;
      const response = await exchange(socketPath, bytes);
      assert.equal(response?.status, status, target);
    }
  }));

const MEDIA_TYPES: Record<number, string[]> = {
  200: [
    "application/json",
    "Application/JSON",
    "application/json;charset=utf-8",
    "application/json; charset=UTF-8",
    'application/json ;\tCHARSET="utf-8"',
    "application/json;",
    "application/json; ; charset=utf-8 ;",
  ],
  415: [
    "",
    "text/plain",
    "application/json5",
    "application/x-ndjson",
    "application/json, application/json",
    "application/json; charset=latin1",
    "application/json; charset=utf8",
    "application/json; charset = utf-8",
    "application/json; charset='utf-8'",
    'application/json; charset="utf-8',
    "application/json; profile=x",
    "application/json; charset=utf-8; v=1",
    "application/json; charset=utf-8; charset=utf-8",
    "application/json charset=utf-8",
    "application/json\u00a0",
    `application/json;${" ".repeat(60_000)}x`,
  ],
};

for (const [status, types] of Object.entries(MEDIA_TYPES)) {
  test(`every media type in the ${status} list gets that status`, () =>
    withService(async ({ socketPath }) => {
      for (const [n, type] of types.entries()) {
        const headers = { "content-type": type };
        const reply = await request(socketPath, { headers, body: batch(`b${n}`) });
        assert.equal(reply.status, Number(status), type);
        if (reply.status === 415) assert.equal(reply.json().error, "unsupported_media_type");
      }
    }));
}

test("a body with any content encoding gets 415", () =>
  withService(async ({ socketPath }) => {
    for (const encoding of ["gzip", "identity", ""]) {
      const headers = { "content-encoding": encoding };
      const reply = await request(socketPath, { headers, body: batch("b1") });
      assert.deepEqual([reply.status, reply.json().error], [415, "unsupported_media_type"]);
    }
  }));

test("POST rejects query parameters", () =>
  withService(async ({ socketPath }) => {
    const posts: Array<[path: string, body: unknown]> = [
      ["/v1/events", batch("b1")],
      ["/v1/sources/retire", { source: "shop" }],
    ];
    for (const [path, body] of posts) {
      for (const query of ["limit=1", "source=shop", "x", "%"]) {
        const reply = await request(socketPath, { path: `${path}?${query}`, body });
        assert.deepEqual([reply.status, reply.json().error], [400, "invalid_request"]);
      }
      assert.equal((await request(socketPath, { path: `${path}?`, body })).status, 200);
    }
  }));

test("a chunked body over the limit gets 413, which the client can read", async () => {
  await withServedLog(async ({ socketPath, reports }) => {
    const head = `POST /v1/events HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;
    const connection = await RawConnection.open(socketPath, head);
    const piece = Buffer.alloc(1024 * 1024, " ");
    for (let sentBytes = 0; sentBytes < INGEST_BODY_BYTES_MAX + 8 * piece.length;) {
      await connection.write(
        Buffer.concat([Buffer.from("100000\r\n"), piece, Buffer.from("\r\n")]),
      );
      sentBytes += piece.length;
    }
    await connection.write("0\r\n\r\n");
    assert.equal((await connection.readResponse())?.status, 413);
    assert.deepEqual(reports, []);
    connection.destroy();
  });
});
