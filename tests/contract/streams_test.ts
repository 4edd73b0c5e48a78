/** `GET /v1/streams`: the pages in a consistent listing. */
import assert from "node:assert/strict";
import type { StreamSummary } from "../../src/event/types.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import {
  assertError,
  batchWith,
  casesOf,
  commit,
  event,
  NO_EVENT_ID,
  streamsPage,
} from "./support/api.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

/** Commits one event to each stream. */
function commitTo(socketPath: string, source: string, batchId: string, streams: string[]) {
  const events = streams.map((stream) => event({ stream }));
  return commit(socketPath, batchWith({ source, batch_id: batchId, events }));
}

/** A row in the listing. */
function row(source: string, stream: string, frontier: string, count: number): StreamSummary {
  return { source, stream, frontier_event_id: frontier, event_count: count };
}

/** Reads the remaining pages after a given one. */
async function restOf(
  socketPath: string,
  page: Awaited<ReturnType<typeof streamsPage>>,
  query: string,
): Promise<StreamSummary[]> {
  const rows: StreamSummary[] = [];
  const through = page.snapshot_through_event_id;
  for (let after = page.next_after; after !== null;) {
    const path = `${query}&through=${through}&after=${encodeURIComponent(after)}`;
    const next = await streamsPage(socketPath, path);
    assert.equal(next.snapshot_through_event_id, through);
    rows.push(...next.streams);
    after = next.next_after;
  }
  return rows;
}

test("each stream has its event count and its latest event, and an empty log has no streams", () =>
  withService(async ({ socketPath }) => {
    const empty = { v: 1, streams: [], next_after: null, snapshot_through_event_id: null };
    assert.deepEqual(await streamsPage(socketPath), empty);
    const first = await commitTo(socketPath, "shop", "1", ["orders", "items"]);
    const last = await commitTo(socketPath, "shop", "2", ["orders"]);
    assert.deepEqual(await streamsPage(socketPath), {
      v: 1,
      streams: [
        row("shop", "items", first.last_event_id, 1),
        row("shop", "orders", last.last_event_id, 2),
      ],
      next_after: null,
      snapshot_through_event_id: last.last_event_id,
    });
  }));

test("rows are sorted by the bytes of source, then stream", () =>
  withService(async ({ socketPath }) => {
    await commitTo(socketPath, "b", "1", ["x"]);
    await commitTo(socketPath, "a.b", "1", ["x"]);
    await commitTo(socketPath, "a", "1", ["z", "x_", "x-", "x.", "x0", "x", "_", "0"]);
    await commitTo(socketPath, "a-b", "1", ["x"]);
    const { streams } = await streamsPage(socketPath);
    assert.deepEqual(streams.map(({ source, stream }) => `${source}/${stream}`), [
      ...["0", "_", "x", "x-", "x.", "x0", "x_", "z"].map((stream) => `a/${stream}`),
      "a-b/x",
      "a.b/x",
      "b/x",
    ]);
  }));

test("source filters the listing, and a source without events has no streams", () =>
  withService(async ({ socketPath }) => {
    await commitTo(socketPath, "a", "1", ["x", "y"]);
    const { last_event_id } = await commitTo(socketPath, "ab", "1", ["x"]);
    const { streams, next_after } = await streamsPage(socketPath, "source=a&limit=2");
    assert.deepEqual(streams.map(({ source, stream }) => source + stream), ["ax", "ay"]);
    assert.equal(next_after, null);
    const none = await streamsPage(socketPath, "source=none");
    assert.deepEqual(none.streams, []);
    assert.equal(none.snapshot_through_event_id, last_event_id);
  }));

for (const source of ["", "&source=a"]) {
  test(`pages share one snapshot while others commit, with after and through${source}`, () =>
    withServedLog(async ({ socketPath, storage, shutDown }) => {
      const streams = Array.from({ length: 7 }, (_, n) => `s${n}`);
      await commitTo(socketPath, "a", "1", streams);
      await commitTo(socketPath, "b", "1", streams);
      const whole = (await streamsPage(socketPath, source.slice(1))).streams;
      const query = `limit=2${source}`;
      const first = await streamsPage(socketPath, query);
      assert.equal(first.streams.length, 2);
      assert.equal(first.next_after, "a/s1");
      await commitTo(socketPath, "a", "2", ["s0", "s3", "s3x"]);
      await commitTo(socketPath, "b", "2", ["s6", "new"]);
      assert.deepEqual([...first.streams, ...await restOf(socketPath, first, query)], whole);
      const through = `through=${first.snapshot_through_event_id}`;
      assert.deepEqual(await streamsPage(socketPath, `${query}&${through}`), first);
      await shutDown();
      await withServedLog(async (restarted) => {
        const rest = await restOf(restarted.socketPath, first, query);
        assert.deepEqual([...first.streams, ...rest], whole, "after a restart");
      }, { storage });
    }));
}

test("through may be any committed event", () =>
  withService(async ({ socketPath }) => {
    const { first_event_id } = await commitTo(socketPath, "a", "1", ["x", "x", "y"]);
    const page = await streamsPage(socketPath, `through=${first_event_id}`);
    assert.deepEqual(page.streams, [row("a", "x", first_event_id, 1)]);
  }));

test("after need not name an existing stream", () =>
  withService(async ({ socketPath }) => {
    const { last_event_id } = await commitTo(socketPath, "b", "1", ["x"]);
    const longest = `${"a".repeat(128)}/${"z".repeat(128)}`;
    const rowsAfter = { [longest]: 1, "a/z": 1, "b/w": 1, "b/x": 0, "c/a": 0 };
    for (const [after, rows] of Object.entries(rowsAfter)) {
      const page = await streamsPage(socketPath, `after=${after}&through=${last_event_id}`);
      assert.equal(page.streams.length, rows, after);
    }
  }));

test("limit is 100 by default and at most 1,000", () =>
  withService(async ({ socketPath }) => {
    const streams = Array.from({ length: 1001 }, (_, n) => `s${n}`);
    await commitTo(socketPath, "a", "1", streams);
    const byDefault = await streamsPage(socketPath);
    assert.equal(byDefault.streams.length, 100);
    assert.notEqual(byDefault.next_after, null);
    const largest = await streamsPage(socketPath, "limit=1000");
    assert.equal(largest.streams.length, 1000);
    assert.equal((await restOf(socketPath, largest, "limit=1000")).length, 1);
  }));

const REFUSED = casesOf({
  invalid_streams_request: {
    "after requires through": "after=a/b",
    "through is an event id": "through=latest",
    "through is not empty": "through=",
    "through is in lowercase": "through=00000000-0000-7000-A000-000000000000",
    "through is a UUIDv7": "through=00000000-0000-4000-8000-000000000000",
    "after contains a stream": `after=a&through=${NO_EVENT_ID}`,
    "after contains one slash": `after=a/b/c&through=${NO_EVENT_ID}`,
    "after contains valid names": `after=A/b&through=${NO_EVENT_ID}`,
    "source matches its pattern": "source=Shop",
    "source is not empty": "source=",
    "limit is positive": "limit=0",
    "limit is at most 1,000": "limit=1001",
    "limit is an integer": "limit=1.5",
    "limit is decimal": "limit=0x10",
    "limit has no sign": "limit=%2B1",
    "limit is not empty": "limit=",
  },
  stream_anchor_unavailable: {
    "through is a committed event": `through=${NO_EVENT_ID}`,
    "through is not a future event": "through=ffffffff-ffff-7fff-bfff-ffffffffffff",
  },
  invalid_request: {
    "a parameter is known": "stream=a",
    "a parameter occurs once": "limit=1&limit=1",
  },
});

for (const [code, rule, query] of REFUSED) {
  test(`streams: ${rule}, otherwise ${code}`, () =>
    withService(async ({ socketPath }) => {
      await commitTo(socketPath, "a", "1", ["b"]);
      const reply = await request(socketPath, { path: `/v1/streams?${query}` });
      assertError(reply, code);
    }));
}
