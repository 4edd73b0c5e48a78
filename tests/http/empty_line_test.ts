/**
 * The bug: empty lines before a request were skipped only if they arrived whole: a CR that arrived
 * alone made the request malformed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpHandler } from "../../src/http/message.ts";
import { exchange, RawConnection } from "../support/raw_client.ts";
import { withHandler } from "../support/test_server.ts";

const handler: HttpHandler = () => Promise.resolve({ status: 200, headers: {}, body: "ok" });
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

test("an empty line before a request is skipped, however it is split", () =>
  withHandler(handler, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    for (let n = 0; n < 3; n++) {
      for (const bytes of ["\r", "\n\r", "\n", "\r\n\r", `\n${GET}`]) {
        await connection.write(bytes);
        // The response to another client shows that the server has read it.
        (await exchange(socketPath, GET)).connection.destroy();
      }
      assert.equal((await connection.readResponse())?.status, 200);
    }
    connection.destroy();
  }));

test("a client that has sent an empty line is idle, not within a head", () =>
  withHandler(handler, async ({ socketPath }) => {
    const [idle, begun] = [
      await RawConnection.open(socketPath),
      await RawConnection.open(socketPath),
    ];
    await idle.write("\r");
    (await exchange(socketPath, GET)).connection.destroy();
    await idle.write("\n");
    await begun.write("G");
    await begun.ended();
    await idle.write(GET);
    assert.equal((await idle.readResponse())?.status, 200);
    idle.destroy();
  }, { headersTimeoutMs: 50 }));
