/** A response sent before the request body has arrived reaches a client that is still sending. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { Admission } from "../../src/service/admission.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { RawConnection } from "../support/raw_client.ts";
import { withServedLog } from "./support/served_log.ts";

const BODY = Buffer.alloc(30 * 1024 * 1024, " ");
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");
const TOKEN = "Authorization: Bearer s3cret\r\n";
const HOST = "Host: localhost\r\n";

const CHUNKED = "Transfer-Encoding: chunked\r\n";

const REFUSALS: Array<[status: number, line: string, headers: string]> = [
  [401, "POST /v1/events", "Connection: close\r\n"],
  [401, "PUT /v1/events", CHUNKED],
  [401, "POST /v1/sources/retire", ""],
  [404, "POST /v1/sources", TOKEN],
  [405, "PUT /v1/sources/retire", TOKEN],
  [400, "POST /v1/sources/retire?source=a", TOKEN],
  [415, "POST /v1/sources/retire", `${TOKEN}Content-Type: application/x-www-form-urlencoded\r\n`],
  [415, "POST /v1/sources/retire", `${TOKEN}Content-Encoding: gzip\r\n`],
  [413, "POST /v1/sources/retire", TOKEN],
  [413, "POST /v1/sources/retire", TOKEN + CHUNKED],
  [415, "POST /v1/events", `${TOKEN}Content-Encoding: gzip\r\n`],
  [429, "POST /v1/events", TOKEN],
];

for (const [status, line, headers] of REFUSALS) {
  test(`a ${status} for ${line} reaches clients still sending or reading late`, async () => {
    const isFull = status === 429;
    const admission = new Admission(isFull ? { waitersMax: 0, totalBytes: 2, bodyBytes: 1 } : {});
    if (isFull) admission.admit(1);
    await withServedLog(async ({ socketPath, reports }) => {
      const isChunked = headers.includes(CHUNKED);
      const framing = isChunked ? "" : `Content-Length: ${BODY.length}\r\n`;
      const head = `${line} HTTP/1.1\r\n${HOST}${headers}${framing}\r\n`;
      const body = isChunked
        ? Buffer.concat([Buffer.from(`${BODY.length.toString(16)}\r\n`), BODY, LAST_CHUNK])
        : BODY;
      for (const readsLate of [false, true]) {
        const connection = await RawConnection.open(socketPath);
        if (readsLate) connection.pause();
        await connection.write(head);
        const sent = connection.write(body);
        if (readsLate) await sent;
        connection.resume();
        const response = await connection.readResponse();
        assert.equal(response?.status, status);
        assert.ok(response?.isComplete);
        assert.equal(typeof JSON.parse(response!.body).message, "string");
        await sent;
        connection.destroy();
      }
      const headersOfNext = { authorization: "Bearer s3cret" };
      assert.equal((await request(socketPath, { headers: headersOfNext })).status, 200);
      assert.deepEqual(reports, []);
    }, { handler: { token: "s3cret", admission } });
  });
}
