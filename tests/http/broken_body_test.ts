/**
 * The bug: after a malformed line of a chunked body with a slow reader, later bytes were
 * decoded as if the line had not been there, and the request was executed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type HttpHandler, MalformedRequestError } from "../../src/http/message.ts";
import { Gate } from "../support/gate.ts";
import { exchange, RawConnection } from "../support/raw_client.ts";
import { withHandler } from "../support/test_server.ts";

const HEAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const BROKEN: Record<string, string> = {
  "a size that is none": "zz\r\n",
  "a chunk that is too long": "1\r\nab\r\n",
  "a size line without its CR": "1\na\r\n",
};

for (const [title, broken] of Object.entries(BROKEN)) {
  test(`a body with ${title} stays broken, whatever follows`, () => {
    const [entered, gate] = [new Gate(), new Gate()];
    const outcome = new Gate<unknown>();
    const handler: HttpHandler = async (request) => {
      entered.open();
      await gate.opened;
      await request.bytes().then(outcome.open.bind(outcome), outcome.open.bind(outcome));
      return { status: 400, headers: {}, body: "broken" };
    };
    return withHandler(handler, async ({ socketPath }) => {
      const connection = await RawConnection.open(socketPath);
      await connection.write(HEAD + broken);
      await entered.opened;
      await connection.write("2\r\n{}\r\n0\r\n\r\n");
      // The server has read it by now.
      for (let n = 0; n < 3; n++) {
        (await exchange(socketPath, "no request\r\n\r\n")).connection.destroy();
      }
      gate.open();
      assert.ok(await outcome.opened instanceof MalformedRequestError);
      const response = await connection.readResponse();
      assert.equal(response?.headers.connection, "close");
      await connection.ended();
    });
  });
}
