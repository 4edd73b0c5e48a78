/** Rules common to all requests: targets, versions, media types and bodies. */
import assert from "node:assert/strict";
import { batch } from "../support/batches.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { exchange, RawConnection } from "../support/raw_client.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

const HOST = "Host: localhost\r\n";

const CHUNKED_HEAD = `POST /v1/events HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;

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

const VERSIONS: Array<[version: string, host: string, status: number, connection?: string]> = [
  ["1.0", "", 200, "close"],
  ["1.0", HOST, 200, "close"],
  ["1.0", HOST + HOST, 400, "close"],
  ["1.1", "", 400],
  ["1.1", HOST, 200],
  ["1.1", HOST + HOST, 400],
  ["1.1", "Host: \r\n", 200],
  ["1.1", "Host: elsewhere.example:8080\r\n", 200],
  ["1.2", "", 400],
  ["1.2", HOST, 200],
  ["1.9", HOST, 200],
  ["2.0", HOST, 400, "close"],
];

test("HTTP/1.1 needs one Host, of any value, and a higher minor version is served as 1.1", () =>
  withService(async ({ socketPath }) => {
    for (const [version, host, status, close] of VERSIONS) {
      const bytes = `GET /v1/streams HTTP/${version}\r\n${host}\r\n`;
      const { status: found, headers } = (await exchange(socketPath, bytes))!;
      assert.deepEqual([found, headers.connection], [status, close], bytes);
    }
  }));

test("the response to a malformed HEAD has no body and says that the connection closes", () =>
  withServedLog(async ({ socketPath }) => {
    for (const before of ["", "\r\n"]) {
      const connection = await RawConnection.open(socketPath);
      await connection.write(`${before}HEAD /v1/streams HTTP/1.1\r\nno header\r\n\r\n`);
      const { status, headers } = (await connection.readResponse("HEAD"))!;
      assert.deepEqual([status, headers.connection], [400, "close"]);
      assert.ok(Number(headers["content-length"]) > 0);
      await connection.ended();
      assert.equal(connection.received.length, 0);
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

test("a chunk size may have leading zeros, in each of many chunks", () =>
  withServedLog(async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    const padded = " ".repeat(10_000) + JSON.stringify(batch("b1"));
    for (const digits of [2, 8, 100]) {
      // A long size counts as ignored bytes, which are limited.
      const pieces = digits > 16 ? [padded] : [...padded];
      const chunks = pieces.map((piece) =>
        `${piece.length.toString(16).padStart(digits, "0")}\r\n${piece}\r\n`
      );
      const end = `${"0".repeat(digits)}\r\n\r\n`;
      await connection.write(`${CHUNKED_HEAD}${chunks.join("")}${end}`);
      assert.equal((await connection.readResponse())?.status, 200, `${digits} digits`);
    }
    connection.destroy();
  }));
