/** Responses of a server that sends without end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ProtocolError } from "../../src/client/errors.ts";
import { CLIENT_DOCUMENT_BYTES_MAX, CLIENT_LINE_BYTES_MAX } from "../../src/limits.ts";
import { CALLS, errorOf, type Reply, withFakeService } from "./support/fake_service.ts";

const MIB = 2 ** 20;
const SPACES = " ".repeat(MIB);

/** Bytes that the server may have written when the client stops to read. */
const BUFFERED_BYTES_MAX = 8 * MIB;

/** Sends spaces until the client closes the connection, and reports how many. */
function endless(status: number, closed: (sentBytes: number) => void): Reply {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json" });
    let sentBytes = 0;
    response.once("close", () => closed(sentBytes));
    const send = () => {
      do sentBytes += MIB; while (!response.destroyed && response.write(SPACES));
    };
    response.on("drain", send);
    send();
  };
}

const document = CLIENT_DOCUMENT_BYTES_MAX;
const CASES: [name: string, status: number, limitBytes: number, call: string][] = [
  ["a receipt", 200, document, "append"],
  ["a listing of streams", 200, document, "streams"],
  ["an error document", 503, document, "append"],
  ["an error document for a follow", 503, document, "follow"],
  ["a page", 200, CLIENT_LINE_BYTES_MAX, "replay"],
  ["a follow line", 200, CLIENT_LINE_BYTES_MAX, "follow"],
];
for (const [name, status, limitBytes, call] of CASES) {
  test(`the client rejects ${name} that does not end, and closes the connection`, async () => {
    const closed = Promise.withResolvers<number>();
    await withFakeService([endless(status, closed.resolve)], async ({ client, seen }) => {
      const { message } = await errorOf(ProtocolError, CALLS[call]!(client));
      assert.ok(message.endsWith(`exceeds ${limitBytes} bytes`), message);
      assert.ok(await closed.promise <= limitBytes + BUFFERED_BYTES_MAX);
      assert.equal(seen.length, 1);
    });
  });
}

test("the client accepts a page and an error document of the greatest size", async () => {
  const page = '{"events":[],"next_after":null,"snapshot_through_event_id":null}';
  const reply: Reply = (response, { path }) => {
    const isPage = path === "/v1/events";
    response.writeHead(isPage ? 200 : 400);
    const sizeBytes = isPage ? CLIENT_LINE_BYTES_MAX : CLIENT_DOCUMENT_BYTES_MAX;
    for (let sent = 0; sent < sizeBytes - MIB; sent += MIB) response.write(SPACES);
    response.end(page.padStart(MIB));
  };
  await withFakeService([reply], async ({ client }) => {
    assert.deepEqual(await CALLS.replay!(client), []);
    await assert.rejects(client.streams(), { status: 400 });
  });
});
