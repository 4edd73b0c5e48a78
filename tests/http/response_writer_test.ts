/** What a writer says of a response whose client has gone. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { ResponseWriter } from "../../src/http/response_writer.ts";
import { StallWatch } from "../../src/http/stall_watch.ts";

const RESPONSE = { status: 200, headers: {} };
const keepsAlive = false;

/**
 * Regression: a response in memory counted as written, so its connection waited for the client to
 * read it, and was kept for a minute.
 */
for (const [title, body] of [["none", null], ["text", "a"], ["bytes", Buffer.from("a")]] as const) {
  test(`ResponseWriter.write() tells that the client has gone (${title})`, async () => {
    const socket = Object.assign(new EventEmitter(), { write: () => assert.fail("it has gone") });
    const writer = new ResponseWriter(socket as unknown as Socket, new StallWatch(60_000));
    socket.emit("close");
    assert.ok(!await writer.write({ ...RESPONSE, body }, keepsAlive, !keepsAlive));
  });
}
