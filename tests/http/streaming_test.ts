/** Streamed responses: backpressure, disconnects and errors. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { HttpHandler } from "../../src/http/message.ts";
import { Gate } from "../support/gate.ts";
import { RawConnection } from "../support/raw_client.ts";
import { letServerWork, withHandler } from "../support/test_server.ts";

const GET = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const PIECE_BYTES = 256 * 1024;

/** Responds with what `body` gives. */
function streaming(body: () => AsyncIterable<Uint8Array>, isEndless = false): HttpHandler {
  return () => Promise.resolve({ status: 200, headers: {}, body: body(), isEndless });
}

test("listen() pulls pieces only as the client reads", async () => {
  let piecesTaken = 0;
  async function* body() {
    for (; piecesTaken < 1000; piecesTaken++) {
      yield await Promise.resolve(new Uint8Array(PIECE_BYTES));
    }
  }
  await withHandler(streaming(body), async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    connection.pause();
    await connection.write(GET);
    await letServerWork(socketPath, 50);
    assert.ok(piecesTaken < 20, `${piecesTaken} pieces taken for a client that reads nothing`);
    connection.destroy();
  });
});

test("listen() ends the stream when the client disconnects", async () => {
  const gate = new Gate();
  async function* body() {
    try {
      for (;;) yield await Promise.resolve(new Uint8Array(PIECE_BYTES));
    } finally {
      gate.open();
    }
  }
  await withHandler(streaming(body), async ({ socketPath, reports }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(GET);
    await connection.receive(PIECE_BYTES);
    connection.destroy();
    await gate.opened;
    assert.deepEqual(reports, []);
  });
});

test("listen() streams a finite body to a client that has half-closed", async () => {
  const gate = new Gate();
  async function* body() {
    yield await Promise.resolve(Buffer.from("one "));
    await gate.opened;
    yield Buffer.from("two");
  }
  await withHandler(streaming(body), async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    await connection.write(GET);
    connection.endInput();
    await connection.receive("one ".length);
    await letServerWork(socketPath, 50);
    gate.open();
    const response = await connection.readResponse();
    assert.equal(response?.body, "one two");
    assert.ok(response?.isComplete);
    await connection.ended();
  });
});
