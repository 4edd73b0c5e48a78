import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { IncomingBody } from "../../src/http/incoming_body.ts";
import { Turns } from "../../src/turns.ts";

/** A chunked body, and whether its socket is paused. */
function openBody() {
  const state = { flow: "on" };
  const socket = {
    pause: () => state.flow = "paused",
    resume: () => state.flow = "on",
  } as unknown as Socket;
  return { state, body: new IncomingBody(null, socket, new Turns(), () => {}) };
}

test("a body in tiny chunks reads on when its turn comes, one in large chunks at once", async () => {
  for (const [chunk, flow] of [["1\r\n \r\n", "paused"], [`40\r\n${" ".repeat(64)}\r\n`, "on"]]) {
    const { state, body } = openBody();
    const first = body.read();
    body.push(Buffer.from(`${chunk}`.repeat(100)));
    assert.notEqual(await first, null);
    assert.equal(state.flow, "paused");
    const second = body.read();
    assert.equal(state.flow, flow);
    await setImmediate();
    assert.equal(state.flow, "on");
    body.push(Buffer.from("0\r\n\r\n"));
    assert.equal(await second, null);
  }
});
