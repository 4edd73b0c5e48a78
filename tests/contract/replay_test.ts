/** `GET /v1/events`, finite, over a socket. */
import assert from "node:assert/strict";
import { batch } from "../support/batches.ts";
import { test } from "../support/tested_service.ts";
import { type HttpReply, request } from "../support/http_client.ts";
import { RawConnection } from "../support/raw_client.ts";
import { stubLog, stubReplay } from "../support/stub_log.ts";
import { withApi } from "../support/test_server.ts";
import { withService } from "./support/served.ts";
import { REPLAY_WHOLE_BYTES_MAX } from "../../src/api/replay_response.ts";

interface Page {
  events: Array<Record<string, unknown> & { event_id: string }>;
  last_event_id?: string;
  next_after: string | null;
  snapshot_through_event_id: string | null;
}

async function readPage(socketPath: string, query = ""): Promise<Page> {
  const reply = await request(socketPath, { path: `/v1/events?${query}` });
  assert.equal(reply.status, 200, reply.text());
  return reply.json();
}

async function commit(socketPath: string, body: unknown): Promise<string> {
  return (await request(socketPath, { body })).json().last_event_id;
}

/** The headers that the service answers for. */
function relevantHeaders({ headers }: HttpReply): Record<string, unknown> {
  const { date: _date, connection: _connection, ...rest } = headers;
  return rest;
}

test("an empty log returns an empty page with nulls", async () => {
  await withService(async ({ socketPath }) => {
    assert.deepEqual(await readPage(socketPath), {
      events: [],
      next_after: null,
      snapshot_through_event_id: null,
    });
  });
});

test("committed events are returned in order, with the members of a committed event", async () => {
  await withService(async ({ socketPath }) => {
    const last = await commit(socketPath, batch("b1", 3));
    const page = await readPage(socketPath);
    assert.deepEqual(page.events.map((event) => event.record_key), [
      "order-0",
      "order-1",
      "order-2",
    ]);
    assert.deepEqual(Object.keys(page.events[0]!).sort(), [
      "batch_id",
      "content_hash",
      "event_hash",
      "event_id",
      "kind",
      "observed_at",
      "payload",
      "record_key",
      "source",
      "stream",
    ]);
    assert.equal(page.last_event_id, last);
    assert.equal(page.next_after, last);
    assert.equal(page.snapshot_through_event_id, last);
  });
});

test("pages are chained by next_after, up to an empty one", async () => {
  await withService(async ({ socketPath }) => {
    await commit(socketPath, batch("b1", 5));
    const keys: unknown[] = [];
    let after = "";
    for (;;) {
      const page = await readPage(socketPath, `limit=2${after}`);
      if (page.events.length === 0) break;
      keys.push(...page.events.map((event) => event.record_key));
      after = `&after=${page.next_after}`;
    }
    assert.deepEqual(keys, ["order-0", "order-1", "order-2", "order-3", "order-4"]);
  });
});

test("filters select exactly, decoded from the query string", async () => {
  await withService(async ({ socketPath }) => {
    const event = { stream: "s", record_key: "a+b c/é", kind: "k&=", payload: null };
    await commit(socketPath, { batch_id: "b1", source: "one", events: [event] });
    await commit(socketPath, batch("b2", 2));
    const query = "source=one&stream=s&record_key=a%2Bb+c%2F%C3%A9&kind=k%26%3D";
    const page = await readPage(socketPath, query);
    assert.deepEqual(page.events.map((found) => found.batch_id), ["b1"]);
    assert.notEqual(page.next_after, page.last_event_id);
    assert.deepEqual((await readPage(socketPath, "source=system")).events, []);
  });
});

test("a limit over replay.max_limit is refused, and the default applies without one", async () => {
  const replay = { defaultLimit: 2, maxLimit: 3 };
  await withApi({ replay }, async ({ socketPath }) => {
    await commit(socketPath, batch("b1", 5));
    assert.equal((await readPage(socketPath)).events.length, 2);
    assert.equal((await readPage(socketPath, "limit=3")).events.length, 3);
    const refused = await request(socketPath, { path: "/v1/events?limit=4" });
    assert.deepEqual([refused.status, refused.json().error], [400, "invalid_replay_request"]);
  });
});

test("HEAD has the status and headers of GET, and no body", async () => {
  await withService(async ({ socketPath }) => {
    await commit(socketPath, batch("b1", 5));
    for (const path of ["/v1/events", "/v1/events?limit=1", "/v1/events?limit=0", "/nothing"]) {
      const get = await request(socketPath, { path });
      const head = await request(socketPath, { path, method: "HEAD" });
      assert.equal(head.status, get.status);
      assert.deepEqual(relevantHeaders(head), relevantHeaders(get));
      assert.equal(head.body.length, 0);
    }
  });
});

test("a large page is streamed and is one JSON document", async () => {
  await withService(async ({ socketPath }) => {
    const payload = "x".repeat(1024);
    const eventCount = 3 * REPLAY_WHOLE_BYTES_MAX / payload.length;
    await commit(socketPath, batch("b1", eventCount, payload));
    const reply = await request(socketPath, { path: "/v1/events?limit=100000" });
    assert.equal(reply.headers["content-length"], undefined);
    assert.equal(reply.json().events.length, eventCount);
    assert.equal(reply.json().last_event_id, reply.json().next_after);
    const head = await request(socketPath, { path: "/v1/events?limit=100000", method: "HEAD" });
    assert.equal(head.status, 200);
    assert.equal(head.headers["content-length"], undefined);
  });
});

test("an error before the status is a 500; one after it breaks the connection", async () => {
  const large = JSON.stringify("x".repeat(REPLAY_WHOLE_BYTES_MAX));
  const failure = new Error("read failed: EIO");
  for (const pieces of [["1", failure], [large, "1", failure]]) {
    const log = stubLog({ replay: () => stubReplay(pieces) });
    await withApi({ log }, async (server) => {
      const connection = await RawConnection.open(server.socketPath);
      await connection.write("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const response = await connection.readResponse();
      const isStreamed = pieces.length === 3;
      assert.equal(response?.status, isStreamed ? 200 : 500);
      assert.equal(response?.isComplete, !isStreamed);
      assert.equal(server.reports.length, 1);
      assert.match(server.reports[0]!, /^GET \/v1\/events failed: Error: read failed: EIO/);
      connection.destroy();
    });
  }
});
