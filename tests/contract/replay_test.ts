/** Finite reads with `GET /v1/events`, tested over a socket. */
import assert from "node:assert/strict";
import { batch } from "../support/batches.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { RawConnection } from "../support/raw_client.ts";
import { stubLog, stubReplay } from "../support/stub_log.ts";
import { commit, replayPage } from "./support/api.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";
import { REPLAY_WHOLE_BYTES_MAX } from "../../src/api/replay_response.ts";

test("pages are chained by next_after up to an empty page", async () => {
  await withService(async ({ socketPath }) => {
    await commit(socketPath, batch("b1", 5));
    const keys: unknown[] = [];
    let after = "";
    for (;;) {
      const page = await replayPage(socketPath, `limit=2${after}`);
      if (page.events.length === 0) break;
      keys.push(...page.events.map((event) => event.record_key));
      after = `&after=${page.next_after}`;
    }
    assert.deepEqual(keys, ["order-0", "order-1", "order-2", "order-3", "order-4"]);
  });
});

test("a limit over replay.max_limit is rejected; without a limit, the default applies", async () => {
  const replay = { defaultLimit: 2, maxLimit: 3 };
  await withServedLog(async ({ socketPath }) => {
    await commit(socketPath, batch("b1", 5));
    assert.equal((await replayPage(socketPath)).events.length, 2);
    assert.equal((await replayPage(socketPath, "limit=3")).events.length, 3);
    const refused = await request(socketPath, { path: "/v1/events?limit=4" });
    assert.deepEqual([refused.status, refused.json().error], [400, "invalid_replay_request"]);
  }, { handler: { replay } });
});

test("a large page is streamed as one JSON document", async () => {
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

test("an error before the status line is a 500; a later error breaks the connection", async () => {
  const large = JSON.stringify("x".repeat(REPLAY_WHOLE_BYTES_MAX));
  const failure = new Error("read failed: EIO");
  for (const pieces of [["1", failure], [large, "1", failure]]) {
    const log = stubLog({ replay: () => stubReplay(pieces) });
    await withServedLog(async (server) => {
      const connection = await RawConnection.open(server.socketPath);
      await connection.write("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const response = await connection.readResponse();
      const isStreamed = pieces.length === 3;
      assert.equal(response?.status, isStreamed ? 200 : 500);
      assert.equal(response?.isComplete, !isStreamed);
      assert.equal(server.reports.length, 1);
      assert.match(server.reports[0]!, /^GET \/v1\/events failed: Error: read failed: EIO/);
      connection.destroy();
    }, { log: () => log });
  }
});
