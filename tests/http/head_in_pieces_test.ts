/**
 * The bug: a head was refused when one read of the socket ended right after a line and the next did
 * not contain the end of the head.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpHandler } from "../../src/http/message.ts";
import { exchange, RawConnection } from "../support/raw_client.ts";
import { withHandler } from "../support/test_server.ts";

const handler: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: "ok" });
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/** Sends each piece as a separate read. */
async function writeApart(socketPath: string, connection: RawConnection, pieces: Iterable<string>) {
  for (const piece of pieces) {
    await connection.write(piece);
    // The response to another client shows that the server has read it.
    (await exchange(socketPath, GET)).connection.destroy();
  }
}

test("a head may arrive byte by byte", () =>
  withHandler(handler, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    for (let n = 0; n < 2; n++) {
      await writeApart(socketPath, connection, GET);
      assert.equal((await connection.readResponse())?.status, 200);
    }
    connection.destroy();
  }));

const MISPLACED: Array<[title: string, pieces: string[]]> = [
  ["a CR without LF", ["GET / HTTP/1.1\r", "a"]],
  ["an LF without CR", ["GET / HTTP/1.1", "\n"]],
  ["a second LF", ["GET / HTTP/1.1\r\n", "\n"]],
];

for (const [title, pieces] of MISPLACED) {
  test(`${title} is refused as soon as it arrives, whatever came before`, () =>
    withHandler(handler, async ({ socketPath }) => {
      const connection = await RawConnection.open(socketPath);
      await writeApart(socketPath, connection, pieces);
      assert.equal((await connection.readResponse())?.status, 400);
      connection.destroy();
    }));
}
