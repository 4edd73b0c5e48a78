/** The end of a follow response whose client has stalled. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { followResponse } from "../../src/api/follow_response.ts";

test("a stalled client still gets the end, before the session is closed", async () => {
  const calls: string[] = [];
  const { body, onStall } = followResponse({
    next: () => Promise.resolve(calls.length === 0 ? Buffer.from("a record, ") : null),
    end(reason) {
      calls.push(reason);
      return Buffer.from("the end");
    },
    close: () => void calls.push("close"),
  });
  const pieces = (body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  const sent = [(await pieces.next()).value];
  onStall!();
  assert.deepEqual(calls, ["buffer_exceeded"]);
  for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
    assert.deepEqual(calls, ["buffer_exceeded"]);
    sent.push(next.value);
  }
  assert.equal(Buffer.concat(sent).toString(), "a record, the end");
  assert.deepEqual(calls, ["buffer_exceeded", "close"]);
});
