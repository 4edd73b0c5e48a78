/** HTTP/1.1 by the letter: versions, lengths, and when a connection closes. */
import assert from "node:assert/strict";
import { test } from "../support/tested_service.ts";
import { RawConnection } from "../support/raw_client.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

const HOST = "Host: localhost\r\n";
const EVENT = { stream: "a", record_key: "1", kind: "upserted", payload: 1 };
const BATCH = JSON.stringify({ source: "s", batch_id: "1", events: [EVENT] });
const POST = `POST /v1/events HTTP/1.1\r\n${HOST}`;

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
      const connection = await RawConnection.open(socketPath);
      await connection.write(`GET /v1/streams HTTP/${version}\r\n${host}\r\n`);
      const { status: found, headers } = (await connection.readResponse())!;
      assert.deepEqual([found, headers.connection], [status, close], `${version} ${host}`);
      connection.destroy();
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

test("a body that its client cuts short gets 400", () =>
  withServedLog(async ({ socketPath }) => {
    const chunk = `5\r\n${BATCH.slice(0, 5)}\r\n`;
    for (
      const request of [
        `${POST}Content-Length: ${BATCH.length}\r\n\r\n${BATCH.slice(0, -1)}`,
        `${POST}Transfer-Encoding: chunked\r\n\r\n${chunk}`,
      ]
    ) {
      const connection = await RawConnection.open(socketPath, request);
      connection.endInput();
      const { status, body, headers } = (await connection.readResponse())!;
      assert.deepEqual([status, headers.connection], [400, "close"]);
      assert.equal(JSON.parse(body).error, "invalid_request");
      await connection.ended();
    }
  }));

test("the responses to a stalled and to an unread body say that the connection closes", () =>
  withServedLog(async ({ socketPath }) => {
    for (const [path, status] of [["/v1/events", 429], ["/v1/nothing", 404]] as const) {
      const connection = await RawConnection.open(socketPath);
      await connection.write(`POST ${path} HTTP/1.1\r\n${HOST}Content-Length: 9\r\n\r\n{`);
      const response = (await connection.readResponse())!;
      assert.deepEqual([response.status, response.headers.connection], [status, "close"]);
      await connection.ended();
    }
  }, { handler: { bodyStallTimeoutMs: 16 } }));

test("a chunk size may have leading zeros, in each of many chunks", () =>
  withServedLog(async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    const padded = " ".repeat(10_000) + BATCH;
    for (const digits of [2, 8, 100]) {
      // A long size counts as ignored bytes, which are limited.
      const pieces = digits > 16 ? [padded] : [...padded];
      const chunks = pieces.map((piece) =>
        `${piece.length.toString(16).padStart(digits, "0")}\r\n${piece}\r\n`
      );
      const end = `${"0".repeat(digits)}\r\n\r\n`;
      await connection.write(`${POST}Transfer-Encoding: chunked\r\n\r\n${chunks.join("")}${end}`);
      assert.equal((await connection.readResponse())?.status, 200, `${digits} digits`);
    }
    connection.destroy();
  }));
