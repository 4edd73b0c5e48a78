/** Backpressure on streams and on pipelined requests, and clients that disconnect. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { FOLLOW_HEAD } from "../../src/api/follow_response.ts";
import type { HttpHandler } from "../../src/http/message.ts";
import { HEADER_BYTES_MAX } from "../../src/limits.ts";
import { RawConnection } from "../support/raw_client.ts";
import { letServerWork, withHandler } from "../support/test_server.ts";

const HEAD = "GET / HTTP/1.1\r\nHost: localhost\r\n";
const GET = `${HEAD}\r\n`;
const PIECE_BYTES = 256 * 1024;

async function* once(piece: Uint8Array) {
  yield await Promise.resolve(piece);
}

test("the last response to a client that has half-closed is whole and says that it is the last", () => {
  const handler: HttpHandler = async ({ client }) => {
    while (client() === "here") await setImmediate();
    return { status: 200, headers: {}, body: once(Buffer.alloc(3 * PIECE_BYTES, "a")) };
  };
  return withHandler(handler, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath, GET + GET);
    connection.endInput();
    for (const close of [undefined, "close"]) {
      const { headers, body, isComplete } = (await connection.readResponse())!;
      assert.deepEqual([headers["connection"], isComplete], [close, true]);
      assert.equal(body.length, 3 * PIECE_BYTES);
    }
    await connection.ended();
    assert.equal(connection.error, null);
  });
});

/** Maximum amount of data buffered per direction, including the operating system's buffers. */
const AHEAD_BYTES_MAX = 1024 * 1024;

/**
 * Regressions: pipelined requests were read further ahead with each response, and responses were
 * buffered for a client that did not read them. Either bug could exhaust memory.
 */
test("pipelined requests are read ahead only up to a limit", () => {
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
    // A server without a limit would have read everything by now.
    while (answered < requests / 50) await setImmediate();
    connection.destroy();
    await sent;
    assert.ok(aheadBytesMax < AHEAD_BYTES_MAX, `${aheadBytesMax} bytes were read ahead`);
  });
});

test("a client that reads no responses is sent responses only up to a limit", () => {
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
    assert.ok(answered * body.length < AHEAD_BYTES_MAX, `${answered} responses were created`);
    connection.resume();
    for (let n = 0; n < requests; n++) {
      assert.equal((await connection.readResponse())?.body.length, body.length);
    }
    connection.destroy();
  });
});

const SENT: Record<string, string> = {
  "nothing more": `${GET}`,
  "further requests": `${GET}`.repeat(4 * HEADER_BYTES_MAX / GET.length),
  "part of a body": `${HEAD}Content-Length: 1000000\r\n\r\n${"x".repeat(4 * HEADER_BYTES_MAX)}`,
  "part of a chunked body": `${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nab`,
  "a malformed chunked body": `${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
};

/**
 * Regression: if a client requested an endless response and then sent more than the service reads
 * ahead, the client's disconnect was never noticed and the response continued forever.
 */
for (const [title, bytes] of Object.entries(SENT)) {
  for (const end of ["destroy", "endInput"] as const) {
    test(`an endless response ends when a client that sent ${title} disconnects (${end})`, () => {
      const begun = Promise.withResolvers<void>();
      let isOver = false;
      const handler: HttpHandler = () => {
        const end = Promise.withResolvers<IteratorReturnResult<undefined>>();
        const pieces = {
          next() {
            begun.resolve();
            return end.promise;
          },
          return() {
            isOver = true;
            end.resolve({ done: true, value: undefined });
            return end.promise;
          },
        };
        const body = { [Symbol.asyncIterator]: () => pieces };
        return Promise.resolve({ ...FOLLOW_HEAD, body, isEndless: true });
      };
      return withHandler(handler, async ({ socketPath }) => {
        const connection = await RawConnection.open(socketPath);
        void connection.write(bytes);
        await begun.promise;
        connection[end]();
        for (let n = 0; n < 200 && !isOver; n++) await letServerWork(socketPath, 1);
        connection.destroy();
        assert.ok(isOver);
      });
    });
  }
}
