/** What `push` does about a service that stops in the middle of a response. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionError } from "../../mod.ts";
import {
  collect,
  keepSilent,
  lines,
  type Reply,
  withFakeService,
} from "../../tests/client/support/fake_service.ts";
import { followLog } from "../push/follow.ts";

/** Long enough for a request to arrive, and for the start of a response. */
const READ_TIMEOUT_MS = 1000;
const STOP = new AbortController().signal;
const EVENTS = { type: "events", events: [], snapshot_through_event_id: null };
const CAUGHT_UP = { type: "caught_up" };
const END = { type: "end", reason: "shutdown" };

const STOPS: [name: string, reply: Reply, wait: string][] = [
  ["before the response", keepSilent, "a response"],
  ["before the first record", lines([], "stay"), "the rest of the response"],
  ["before it is caught up", lines([EVENTS], "stay"), "the rest of the response"],
];
for (const [name, reply, wait] of STOPS) {
  test(`followLog() says what it waited for when the service stops ${name}`, () =>
    withFakeService([reply], async ({ socketPath }) => {
      const address = { socket: socketPath, readTimeoutMs: READ_TIMEOUT_MS };
      const message = `GET /v1/events got no response within 1000 ms; it was waiting for ${wait}`;
      await assert.rejects(collect(followLog(address, null, STOP)), (error) => {
        assert(error instanceof ConnectionError, String(error));
        assert.equal(error.message, message);
        return true;
      });
    }));
}

test("followLog() waits for its consumer, and for new events, without a limit", async () => {
  const sent = Promise.withResolvers<void>();
  const reply: Reply = async (response, request) => {
    await lines([EVENTS, CAUGHT_UP], "stay")(response, request);
    await sent.promise;
    response.end(`${JSON.stringify(END)}\n`);
  };
  await withFakeService([reply], async ({ client, socketPath }) => {
    const address = { socket: socketPath, readTimeoutMs: READ_TIMEOUT_MS };
    const records = followLog(address, null, STOP);
    assert.equal((await records.next()).value?.type, "events");
    // A read that starts now ends at its deadline, after that of the follow would have expired.
    await assert.rejects(client.streams(), ConnectionError);
    assert.equal((await records.next()).value?.type, "caught_up");
    const next = records.next();
    await assert.rejects(client.streams(), ConnectionError);
    sent.resolve();
    assert.equal((await next).value?.type, "end");
  }, { readTimeoutMs: READ_TIMEOUT_MS });
});
