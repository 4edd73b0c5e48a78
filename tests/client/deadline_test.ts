/** Deadlines of requests to a service that stops in the middle of a response. */
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { ConnectionError } from "../../src/client/errors.ts";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import { CLIENT_SOCKETS_MAX, unixFetch } from "../../src/client/unix_fetch.ts";
import {
  BATCH,
  collect,
  errorOf,
  eventId,
  keepSilent,
  lines,
  type Reply,
  withFakeService,
  withListening,
} from "./support/fake_service.ts";

/** Long enough for a request to arrive, and for the start of a response. */
const TIMEOUT_MS = 1000;

const CAUGHT_UP = {
  type: "caught_up",
  next_after: eventId(1),
  snapshot_through_event_id: eventId(1),
};
const END = { type: "end", reason: "writer_poisoned", last_event_id: null };

const stopMidway: Reply = (response) => {
  response.writeHead(200, { "content-length": "1000" });
  response.write('{"events":');
};

const READS: ((client: EventLogClient) => Promise<unknown>)[] = [
  (client) => collect(client.replay()),
  (client) => client.streams(),
  (client) => client.findEvent("not an event id"),
];
const WAITS: [wait: string, reply: Reply][] = [
  ["a response", keepSilent],
  ["the rest of the response", stopMidway],
];
for (const [wait, reply] of WAITS) {
  test(`reads give up after readTimeoutMs, and say that they waited for ${wait}`, async () => {
    const onRetry = () => assert.fail("no read is repeated");
    await withFakeService([reply], async ({ client, seen }) => {
      const message = `got no response within ${TIMEOUT_MS} ms; it was waiting for ${wait}`;
      const errors = READS.map((read) => errorOf(ConnectionError, read(client)));
      for (const error of await Promise.all(errors)) {
        assert.match(error.message, new RegExp(`^GET /v1/\\w+ ${message}$`));
      }
      assert.equal(seen.length, READS.length);
    }, { readTimeoutMs: TIMEOUT_MS, onRetry });
  });
}

test("append() says that it waited for the service to accept a request that is not read", () =>
  withListening(createServer({ pauseOnConnect: true }), async (socketPath) => {
    const options = { writeTimeoutMs: TIMEOUT_MS, attemptsMax: 1 };
    const client = new EventLogClient(unixFetch(socketPath), options);
    // Larger than the buffers of a socket.
    const payload = "x".repeat(4_000_000);
    const events = [{ stream: "s", record_key: "k", kind: "upserted", payload }];
    const { message } = await errorOf(ConnectionError, client.append({ ...BATCH, events }));
    assert.match(message, /; it was waiting for the service to accept the request$/);
  }));

test("append() says that it waited for a connection when reads use all of them", async () => {
  await withFakeService([keepSilent], async ({ client }) => {
    const abort = new AbortController();
    const { signal } = abort;
    const reads = Array.from({ length: CLIENT_SOCKETS_MAX }, () => client.streams({ signal }));
    const { message } = await errorOf(ConnectionError, client.append(BATCH));
    assert.match(message, /waiting for a free connection \(all 64 are in use\)$/);
    abort.abort("done");
    for (const { reason } of await Promise.allSettled(reads) as PromiseRejectedResult[]) {
      assert.equal(reason, "done");
    }
  }, { writeTimeoutMs: TIMEOUT_MS });
});

test("replay() works beside more follows than the pool has connections", async () => {
  const page = { events: [], next_after: null, snapshot_through_event_id: null };
  const reply: Reply = (response, request) =>
    request.query.follow === "true"
      ? lines([CAUGHT_UP], "stay")(response, request)
      : void response.end(JSON.stringify(page));
  await withFakeService([reply], async ({ client }) => {
    const follows = Array.from({ length: CLIENT_SOCKETS_MAX + 1 }, () => client.follow());
    for (const { value } of await Promise.all(follows.map((follow) => follow.next()))) {
      assert.equal(value?.type, "caught_up");
    }
    assert.deepEqual(await collect(client.replay()), []);
    for (const follow of follows) await follow.return();
  }, { readTimeoutMs: 60_000 });
});

const SILENT_STARTS: [name: string, wait: string, reply: Reply][] = [
  ["before the response", "a response", keepSilent],
  ["before the first record", "the rest of the response", lines([], "stay")],
];
for (const [name, wait, reply] of SILENT_STARTS) {
  test(`follow() reconnects after readTimeoutMs without a record ${name}`, async () => {
    await withFakeService([reply, lines([CAUGHT_UP, END])], async ({ client, seen }) => {
      const reasons: unknown[] = [];
      const onReconnect = ({ reason }: { reason: unknown }) => void reasons.push(reason);
      const items = await collect(client.follow({ onReconnect }));
      assert.deepEqual(items.map(({ type }) => type), ["caught_up", "end"]);
      assert.equal(seen.length, 2);
      const message = `GET /v1/events got no response within ${TIMEOUT_MS} ms`;
      assert.ok(
        String(reasons[0]).includes(`${message}; it was waiting for ${wait}`),
        `${reasons}`,
      );
    }, { readTimeoutMs: TIMEOUT_MS });
  });
}

test("follow() waits for new events, and for its consumer, without a limit", async () => {
  const sent = Promise.withResolvers<void>();
  const reply: Reply = async (response, request) => {
    await lines([CAUGHT_UP], "stay")(response, request);
    await sent.promise;
    response.end(`${JSON.stringify(END)}\n`);
  };
  await withFakeService([reply], async ({ client, seen }) => {
    const items = client.follow();
    await items.next();
    const next = items.next();
    // A read that starts now ends at its deadline, after that of the follow would have expired.
    await assert.rejects(client.streams(), ConnectionError);
    sent.resolve();
    assert.equal((await next).value?.type, "end");
    assert.equal(seen.filter(({ query }) => query.follow === "true").length, 1);
  }, { readTimeoutMs: TIMEOUT_MS });
});
