/** Clients that stop reading or stay idle give up their connection; others keep theirs. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { HttpHandler, HttpResponse } from "../../src/http/message.ts";
import { RawConnection } from "../support/raw_client.ts";
import { withHandler } from "../support/test_server.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
/** More than the buffers of a socket hold. */
const LARGE = "x".repeat(4_000_000);
const SHORT_TIMEOUT_MS = 40;

async function* pieces(): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < 4; n++) yield await Promise.resolve(Buffer.from(LARGE.slice(3_000_000)));
}

const BODIES: [title: string, body: () => HttpResponse["body"]][] = [
  ["text", () => LARGE],
  ["bytes", () => Buffer.from(LARGE)],
  ["a stream", pieces],
];

for (const [title, body] of BODIES) {
  for (const connection of ["close", "keep-alive"]) {
    test(`a client gets ${title}, unless it does not read it (${connection})`, async () => {
      let ended = Promise.withResolvers<void>();
      const handler: HttpHandler = () => {
        const onEnd = () => ended.resolve();
        return Promise.resolve({ status: 200, headers: { connection }, body: body(), onEnd });
      };
      await withHandler(handler, async ({ socketPath }) => {
        const reading = await RawConnection.open(socketPath, GET);
        assert.equal((await reading.readResponse())!.body, LARGE);
        await ended.promise;
        reading.destroy();
      });
      ended = Promise.withResolvers<void>();
      await withHandler(handler, async ({ socketPath }) => {
        const stalled = await RawConnection.open(socketPath);
        stalled.pause();
        await stalled.write(GET);
        await ended.promise;
        stalled.resume();
        await stalled.ended();
        assert.ok(stalled.received.length < LARGE.length, "the response was cut off");
      }, { writeStallTimeoutMs: SHORT_TIMEOUT_MS });
    });
  }
}

const respond: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: "" });

test("idle connections time out, whether or not they have sent a request", () =>
  withHandler(respond, async ({ socketPath }) => {
    const fresh = await RawConnection.open(socketPath);
    const served = await RawConnection.open(socketPath, GET);
    assert.equal((await served.readResponse())?.status, 200);
    await Promise.all([fresh.ended(), served.ended()]);
  }, { idleTimeoutMs: SHORT_TIMEOUT_MS }));

test("beyond the limit, the connection idle for longest is closed for a new one", () =>
  withHandler(respond, async ({ socketPath }) => {
    const open = async () => {
      const connection = await RawConnection.open(socketPath, GET);
      assert.equal((await connection.readResponse())?.status, 200);
      return connection;
    };
    const first = await open();
    const second = await open();
    const silent = await RawConnection.open(socketPath);
    const third = await open();
    await silent.ended();
    assert.deepEqual([first.hasEnded, second.hasEnded], [false, false], "they sent a request");
    const fourth = await open();
    await first.ended();
    assert.deepEqual([second.hasEnded, third.hasEnded], [false, false]);
    for (const connection of [second, third, fourth]) connection.destroy();
  }, { connectionsMax: 3 }));

test("beyond the limit, a new connection is closed if all others are busy", () => {
  const begun = Promise.withResolvers<void>();
  const may = Promise.withResolvers<void>();
  const handler: HttpHandler = async () => {
    begun.resolve();
    await may.promise;
    return { status: 200, headers: {}, body: "" };
  };
  return withHandler(handler, async ({ socketPath }) => {
    const busy = await RawConnection.open(socketPath, GET);
    await begun.promise;
    const other = await RawConnection.open(socketPath);
    await other.ended();
    may.resolve();
    assert.equal((await busy.readResponse())?.status, 200);
    busy.destroy();
  }, { connectionsMax: 1 });
});
