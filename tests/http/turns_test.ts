/** Clients that send many or large requests delay others only by bounded work. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { IncomingBody } from "../../src/http/incoming_body.ts";
import type { HttpHandler } from "../../src/http/message.ts";
import { StallWatch } from "../../src/http/stall_watch.ts";
import { HEADER_LINES_MAX, UNAUTHORIZED_MAX } from "../../src/limits.ts";
import { Turns } from "../../src/turns.ts";
import { exchange, RawConnection } from "../support/raw_client.ts";
import { withHandler } from "../support/test_server.ts";

const GET = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
/** So many requests fit in one read of the server. */
const PIPELINED = 1000;

const respond = (status: number): HttpHandler => () =>
  Promise.resolve({ status, headers: {}, body: "" });

test("a request is served before those that another client has pipelined", () => {
  let pipelined = 0;
  let servedAfter = PIPELINED;
  const begun = Promise.withResolvers<void>();
  const handler: HttpHandler = ({ target }) => {
    if (target === "/other") servedAfter = pipelined;
    else pipelined += 1;
    begun.resolve();
    return Promise.resolve({ status: 200, headers: {}, body: "" });
  };
  return withHandler(handler, async ({ socketPath }) => {
    const pipelining = await RawConnection.open(socketPath);
    const other = await RawConnection.open(socketPath);
    void pipelining.write(GET.repeat(PIPELINED));
    await begun.promise;
    await other.write(GET.replace("/", "/other"));
    assert.equal((await other.readResponse())?.status, 200);
    assert.ok(servedAfter < PIPELINED, `${servedAfter} requests went first`);
    for (let n = 0; n < PIPELINED; n++) {
      assert.equal((await pipelining.readResponse())?.status, 200);
    }
    for (const connection of [pipelining, other]) connection.destroy();
  });
});

/** A chunked body, and whether its socket is paused. */
function openBody() {
  const state = { flow: "on" };
  const socket = {
    pause: () => state.flow = "paused",
    resume: () => state.flow = "on",
  } as unknown as Socket;
  return {
    state,
    body: new IncomingBody(null, socket, new Turns(), new StallWatch(60_000), () => {}),
  };
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

test(`a head of ${HEADER_LINES_MAX} lines is accepted, a longer one refused`, () =>
  withHandler(respond(200), async ({ socketPath }) => {
    const head = (lines: number) =>
      GET.replace("\r\n\r\n", "\r\na:".repeat(lines - 1) + "\r\n\r\n");
    assert.equal((await exchange(socketPath, head(HEADER_LINES_MAX)))?.status, 200);
    const refused = await exchange(socketPath, head(HEADER_LINES_MAX + 1));
    assert.equal(refused?.status, 400);
    assert.equal(refused?.headers["connection"], "close");
  }));

test(`a connection closes after ${UNAUTHORIZED_MAX} 401 responses in a row`, () => {
  let served = 0;
  // One request in between is authorized.
  const handler: HttpHandler = (request) => respond(served++ === 1 ? 200 : 401)(request);
  return withHandler(handler, async ({ socketPath }) => {
    const connection = await RawConnection.open(socketPath);
    void connection.write(GET.repeat(2 * UNAUTHORIZED_MAX));
    let response = await connection.readResponse();
    let count = 1;
    for (; response?.headers["connection"] !== "close"; count++) {
      response = await connection.readResponse();
    }
    assert.equal(count, UNAUTHORIZED_MAX + 2);
    await connection.ended();
  });
});
