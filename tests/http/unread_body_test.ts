/** Responses that precede the request body reach a client that is still sending. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ConnectionLostError, type HttpHandler } from "../../src/http/message.ts";
import { DRAIN_BYTES_MAX } from "../../src/limits.ts";
import { Gate } from "../support/gate.ts";
import { RawConnection } from "../support/raw_client.ts";
import type { RawResponse } from "../support/raw_response.ts";
import { bodyOf, withHandler } from "../support/test_server.ts";

const BODY = Buffer.alloc(30 * 1024 * 1024, "a");
const HOST = "Host: localhost\r\n";
const LENGTH = `Content-Length: ${BODY.length}\r\n`;
const CHUNKED = "Transfer-Encoding: chunked\r\n";
const CHUNK_BYTES = 1024 * 1024;

/** Refuses every request before its body is read. */
const refuse: HttpHandler = () =>
  Promise.resolve({ status: 401, headers: { "content-type": "text/plain" }, body: "no" });

/** Refuses every request after the first piece of its body. */
const refuseLater: HttpHandler = async (request) => {
  await request.read();
  return await refuse(request);
};

function chunk(bytes: Uint8Array): Buffer {
  const size = Buffer.from(`${bytes.length.toString(16)}\r\n`);
  return Buffer.concat([size, bytes, Buffer.from("\r\n")]);
}

/** The body in the framing of the headers. */
function framed(headers: string): Uint8Array {
  return headers.includes(CHUNKED) ? Buffer.concat([chunk(BODY), Buffer.from("0\r\n\r\n")]) : BODY;
}

function assertRefused(response: RawResponse | null): void {
  assert.equal(response?.status, 401);
  assert.equal(response?.body, "no");
  assert.ok(response?.isComplete);
}

const HANDLERS = { "unread": refuse, "read in part": refuseLater };
const FRAMINGS = {
  "declared": LENGTH,
  "chunked": CHUNKED,
  "declared, on a connection to be closed": `${LENGTH}Connection: close\r\n`,
};

for (const [state, handler] of Object.entries(HANDLERS)) {
  for (const [framing, headers] of Object.entries(FRAMINGS)) {
    const head = `POST / HTTP/1.1\r\n${HOST}${headers}\r\n`;

    test(`a response reaches a client that still sends, or reads late: ${state}, ${framing}`, () =>
      withHandler(handler, async ({ socketPath }) => {
        for (const readsLate of [false, true]) {
          const connection = await RawConnection.open(socketPath);
          if (readsLate) connection.pause();
          await connection.write(head);
          const sent = connection.write(framed(headers));
          if (readsLate) await sent;
          connection.resume();
          assertRefused(await connection.readResponse());
          await sent;
          assert.equal(connection.error, null);
          connection.destroy();
        }
      }));
  }
}

test("a connection whose unread body had arrived serves the next request", async () => {
  await withHandler(refuse, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    for (let i = 0; i < 3; i++) {
      await connection.write(`POST / HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\nabc`);
      assertRefused(await connection.readResponse());
    }
    connection.destroy();
  });
});

test("an endless body is cut off", async () => {
  await withHandler(refuse, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`POST / HTTP/1.1\r\n${HOST}${CHUNKED}\r\n`);
    const piece = chunk(Buffer.alloc(CHUNK_BYTES));
    let sentBytes = 0;
    while (connection.error === null && sentBytes < 4 * DRAIN_BYTES_MAX) {
      await connection.write(piece);
      sentBytes += CHUNK_BYTES;
    }
    await connection.ended();
    assert.ok(sentBytes < 2 * DRAIN_BYTES_MAX, `${sentBytes} bytes were taken`);
  });
});

test("HttpRequest.read() rejects when the client disconnects within the body", async () => {
  const started = new Gate();
  const outcome = new Gate<unknown>();
  const handler: HttpHandler = async (request) => {
    const reading = bodyOf(request);
    started.open();
    await reading.then(outcome.open.bind(outcome), outcome.open.bind(outcome));
    return await refuse(request);
  };
  await withHandler(handler, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`POST / HTTP/1.1\r\n${HOST}Content-Length: 10\r\n\r\nabc`);
    await started.opened;
    connection.destroy();
    assert.ok(await outcome.opened instanceof ConnectionLostError);
  });
});
