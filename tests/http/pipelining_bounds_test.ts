/**
 * The bugs: pipelined requests were read further ahead with each response, and responses were
 * buffered for a client that did not read. Either could exhaust memory.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { HttpHandler } from "../../src/http/message.ts";
import { RawConnection } from "../support/raw_client.ts";
import { letServerWork, withHandler } from "../support/test_server.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
/** Read-ahead and write-ahead of the service, and the buffers of the system. */
const AHEAD_BYTES_MAX = 1024 * 1024;

test("pipelined requests are read ahead up to a limit", () => {
  const requests = 200_000;
  const piece = GET.repeat(1000);
  let answered = 0;
  let takenBytes = 0;
  let aheadBytesMax = 0;
  const handler: HttpHandler = async () => {
    await setImmediate();
    answered += 1;
    aheadBytesMax = Math.max(aheadBytesMax, takenBytes - answered * GET.length);
    return { status: 200, headers: {}, body: "ok" };
  };
  return withHandler(handler, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    const sent = (async () => {
      while (takenBytes < requests * GET.length && connection.error === null) {
        await connection.write(piece);
        takenBytes += piece.length;
      }
    })();
    // A server without a limit has read everything by now.
    while (answered < requests / 50) await setImmediate();
    connection.destroy();
    await sent;
    assert.ok(aheadBytesMax < AHEAD_BYTES_MAX, `${aheadBytesMax} bytes were read ahead`);
  });
});

test("a client that reads no responses is served up to a limit", () => {
  const requests = 500;
  const body = "x".repeat(40_000);
  let answered = 0;
  const handler: HttpHandler = () => {
    answered += 1;
    return Promise.resolve({ status: 200, headers: {}, body });
  };
  return withHandler(handler, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    connection.pause();
    await connection.write(GET.repeat(requests));
    await letServerWork(socketPath, 50);
    assert.ok(answered * body.length < AHEAD_BYTES_MAX, `${answered} answers were made`);
    connection.resume();
    for (let n = 0; n < requests; n++) {
      assert.equal((await connection.readResponse())?.body.length, body.length);
    }
    connection.destroy();
  });
});
