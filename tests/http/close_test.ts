/** Shutdown: pending requests are served, connections close, the socket file is removed. */
import assert from "node:assert/strict";
import { existsSync, unlinkSync } from "node:fs";
import { createServer } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { HttpHandler } from "../../src/http/message.ts";
import { Gate } from "../support/gate.ts";
import { request } from "../support/http_client.ts";
import { RawConnection } from "../support/raw_client.ts";
import { withHandler } from "../support/test_server.ts";

const HOST = "Host: localhost\r\n";

// deno-lint-ignore require-await -- a handler is asynchronous
const ok: HttpHandler = async () => ({ status: 200, headers: {}, body: "ok" });

/** Responds when the gate opens; `entered` resolves when the body is read and it waits. */
function gated(entered: Gate, gate: Gate): HttpHandler {
  return async (request) => {
    entered.open();
    const body = await request.bytes();
    await gate.opened;
    return { status: 200, headers: {}, body: `${body.length} bytes` };
  };
}

test("HttpServer.close() removes the socket file and refuses new connections", async () => {
  await withHandler(ok, async ({ socketPath, server }) => {
    await server.close();
    assert.ok(!existsSync(socketPath));
    await assert.rejects(request(socketPath), { code: "ENOENT" });
  });
});

test("HttpServer.close() is idempotent", async () => {
  await withHandler(ok, async ({ server }) => {
    await Promise.all([server.close(), server.close()]);
    await server.close();
  });
});

test("HttpServer.close() closes connections that are idle, new or within a head", async () => {
  await withHandler(ok, async ({ socketPath, server }) => {
    const idle = await RawConnection.open(socketPath);
    await idle.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await idle.readResponse();
    const fresh = await RawConnection.open(socketPath);
    const begun = await RawConnection.open(socketPath);
    await begun.write("GET / HT");
    // A later response shows that the server has read everything above.
    await request(socketPath);
    await server.close();
    await Promise.all([idle.ended(), fresh.ended(), begun.ended()]);
  });
});

test("HttpServer.close() waits for the request of a disconnected client", async () => {
  const [entered, left, gate] = [new Gate(), new Gate(), new Gate()];
  const over = { done: true as const, value: undefined };
  const pieces = {
    async next() {
      entered.open();
      await gate.opened;
      return over;
    },
    // deno-lint-ignore require-await -- an AsyncIterator's return() gives a promise
    async return() {
      left.open();
      return over;
    },
  };
  const body = { [Symbol.asyncIterator]: () => pieces };
  // deno-lint-ignore require-await -- a handler is asynchronous
  const endless: HttpHandler = async () => ({ status: 200, headers: {}, body, isEndless: true });
  await withHandler(endless, async ({ socketPath, server, reports }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await entered.opened;
    connection.destroy();
    await left.opened;
    let isClosed = false;
    const closed = server.close().then(() => isClosed = true);
    for (let turn = 0; turn < 200 && !isClosed; turn++) await setImmediate();
    assert.ok(!isClosed);
    gate.open();
    await closed;
    assert.deepEqual(reports, []);
  });
});

test("HttpServer.close() waits for the response to a pending request", async () => {
  const [entered, gate] = [new Gate(), new Gate()];
  await withHandler(gated(entered, gate), async ({ socketPath, server, reports }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await entered.opened;
    const closed = server.close();
    gate.open();
    assert.equal((await connection.readResponse())?.body, "0 bytes");
    await closed;
    await connection.ended();
    assert.deepEqual(reports, []);
  });
});

test("HttpServer.close() waits for an arriving body", async () => {
  const [entered, gate] = [new Gate(), new Gate()];
  await withHandler(gated(entered, gate), async ({ socketPath, server }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`POST / HTTP/1.1\r\n${HOST}Content-Length: 6\r\n\r\nabc`);
    await entered.opened;
    const closed = server.close();
    await connection.write("def");
    gate.open();
    assert.equal((await connection.readResponse())?.body, "6 bytes");
    await closed;
    await connection.ended();
  });
});

test("HttpServer.close() waits for a streamed response", async () => {
  const gate = new Gate();
  async function* body() {
    yield new TextEncoder().encode("one ");
    await gate.opened;
    yield new TextEncoder().encode("two");
  }
  const handler: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: body() });
  await withHandler(handler, async ({ socketPath, server }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await connection.receive(1);
    const closed = server.close();
    gate.open();
    assert.equal((await connection.readResponse())?.body, "one two");
    await closed;
    await connection.ended();
  });
});

test("HttpServer.close() closes connections that do not end, and reports it", async () => {
  const [entered, ended] = [new Gate(), new Gate()];
  async function* body() {
    try {
      for (;;) {
        yield await Promise.resolve(new Uint8Array(64 * 1024));
        entered.open();
      }
    } finally {
      ended.open();
    }
  }
  const handler: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: body() });
  await withHandler(handler, async ({ socketPath, server, reports }) => {
    const connection = await RawConnection.open(socketPath);
    connection.pause();
    await connection.write(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await entered.opened;
    await server.close();
    await ended.opened;
    assert.deepEqual(reports, ["closing connections that did not end within 20 ms"]);
    connection.destroy();
  }, { shutdownGraceMs: 20 });
});

test("HttpServer.close() keeps a socket that another process created at its path", async () => {
  await withHandler(ok, async ({ socketPath, server }) => {
    unlinkSync(socketPath);
    const other = createServer((socket) => socket.end());
    await new Promise<void>((resolve) => other.listen(socketPath, resolve));
    await server.close();
    assert.ok(existsSync(socketPath));
    const connection = await RawConnection.open(socketPath);
    await connection.ended();
    await new Promise((resolve) => other.close(resolve));
  });
});
