/** Replays against a scripted service. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PositionError, ProtocolError } from "../../src/client/errors.ts";
import {
  collect,
  errorOf,
  eventId,
  events,
  hashOf,
  json,
  refuse,
  type Reply,
  withFakeService,
} from "./support/fake_service.ts";

/** A page with events `from` to `to` in a log that ends at event `through`. */
function page(from: number, to: number, nextAfter: number, through: number): Reply {
  return json(200, {
    events: events(from, to),
    ...(to < from ? {} : { last_event_id: eventId(to) }),
    next_after: eventId(nextAfter),
    snapshot_through_event_id: eventId(through),
  });
}

const EMPTY_LOG = json(200, { events: [], next_after: null, snapshot_through_event_id: null });

test("replayPages() requests pages until the snapshot is exhausted", async () => {
  const replies = [page(1, 2, 2, 5), page(3, 4, 4, 5), page(5, 5, 5, 5)];
  await withFakeService(replies, async ({ client, seen }) => {
    const pages = await collect(client.replayPages({ limit: 2 }));
    assert.deepEqual(pages.map((each) => each.events.length), [2, 2, 1]);
    assert.deepEqual(pages.map((each) => each.nextAfter), [2, 4, 5].map(eventId));
    assert.deepEqual(seen.map(({ query }) => query), [
      { limit: "2" },
      { limit: "2", after: eventId(2) },
      { limit: "2", after: eventId(4) },
    ]);
  });
});

test("replayPages() ends at the snapshot of its first page while events are appended", async () => {
  const replies = [page(1, 2, 2, 3), page(3, 4, 4, 50)];
  await withFakeService(replies, async ({ client }) => {
    const pages = await collect(client.replayPages());
    assert.deepEqual(pages[1], {
      events: events(3, 3),
      nextAfter: eventId(3),
      snapshotThroughEventId: eventId(3),
    });
    assert.equal(pages.length, 2);
  });
});

test("replayPages() rejects a page that does not advance", async () => {
  await withFakeService([page(1, 1, 1, 9)], async ({ client, seen }) => {
    await assert.rejects(collect(client.replayPages()), ProtocolError);
    assert.equal(seen.length, 2);
  });
});

test("replay() yields single events without prefetching pages", async () => {
  await withFakeService([page(1, 2, 2, 4), page(3, 4, 4, 4)], async ({ client, seen }) => {
    for await (const event of client.replay()) {
      if (event.event_id === eventId(2)) break;
    }
    assert.equal(seen.length, 1);
  });
});

test("replay() sends its filter in wire format", async () => {
  await withFakeService([page(2, 2, 2, 2)], async ({ client, seen }) => {
    const filter = { source: "s", stream: "t", recordKey: "a b&ü", kind: "k" };
    await collect(client.replay({ ...filter, after: eventId(1), limit: 7 }));
    assert.deepEqual(seen[0]!.query, {
      after: eventId(1),
      source: "s",
      stream: "t",
      record_key: "a b&ü",
      kind: "k",
      limit: "7",
    });
  });
});

/** A page with these streams. */
function streamsPage(names: string[], nextAfter: string | null, through: number): Reply {
  const streams = names.map((stream) => ({
    source: "s",
    stream,
    frontier_event_id: eventId(1),
    event_count: 1,
  }));
  const through_ = { snapshot_through_event_id: eventId(through) };
  return json(200, { v: 1, streams, next_after: nextAfter, ...through_ });
}

test("streams() reads all pages at the snapshot of the first", async () => {
  const replies = [streamsPage(["a", "b"], "s/b", 7), streamsPage(["c"], null, 7)];
  await withFakeService(replies, async ({ client, seen }) => {
    const { streams, snapshotThroughEventId } = await client.streams({ source: "s" });
    assert.deepEqual(streams.map(({ stream }) => stream), ["a", "b", "c"]);
    assert.equal(snapshotThroughEventId, eventId(7));
    assert.deepEqual(seen.map(({ query }) => query), [
      { source: "s", limit: "1000" },
      { source: "s", limit: "1000", after: "s/b", through: eventId(7) },
    ]);
  });
});

test("streams() rejects a page that does not advance", async () => {
  await withFakeService([streamsPage(["a"], "s/a", 7)], async ({ client }) => {
    await assert.rejects(client.streams(), ProtocolError);
  });
});

test("replay() throws a PositionError when its position is another event in the log", async () => {
  await withFakeService([page(6, 9, 9, 9)], async ({ client }) => {
    const after = eventId(5);
    const read = (afterHash: string) => collect(client.replay({ after, afterHash }));
    await assert.rejects(read(hashOf(eventId(4))), PositionError);
    assert.deepEqual(await read(hashOf(after)), events(6, 9));
  });
});

test("replayPages() checks its position again after a pause or a retry", async () => {
  const busy = refuse(429, "overloaded");
  const replies = [page(1, 1, 1, 4), page(2, 2, 2, 4), busy, page(3, 3, 3, 4)];
  await withFakeService(replies, async ({ client, lost, checked, timing }) => {
    const pages = client.replayPages({ limit: 9 });
    for (const n of [1, 2]) assert.deepEqual((await pages.next()).value?.events, events(n, n));
    assert.deepEqual(checked, []);
    assert.deepEqual((await pages.next()).value?.events, events(3, 3));
    assert.deepEqual(checked, [eventId(2)]);
    lost.add(eventId(3));
    timing.advance(1000);
    await assert.rejects(pages.next(), PositionError);
  });
});

test("replay() starts at a time, which names no event", async () => {
  const since = Date.UTC(2026, 0, 31);
  const start = "019c1159-7000-7000-8000-000000000000";
  const beyond = json(200, {
    events: [],
    next_after: start,
    snapshot_through_event_id: eventId(7),
  });
  for (const given of [since, new Date(since)]) {
    await withFakeService([beyond, page(8, 9, 9, 9)], async ({ client, seen, checked }) => {
      const read = (after: string | null) => collect(client.replayPages({ since: given, after }));
      const [unreached] = await read(null);
      assert.deepEqual([unreached!.events, unreached!.nextAfter], [[], null]);
      assert.equal((await read(unreached!.nextAfter))[0]!.nextAfter, eventId(9));
      assert.deepEqual(seen.map(({ query }) => query.after), [start, start]);
      assert.deepEqual(checked, []);
      await read(eventId(5));
      assert.deepEqual([seen.at(-1)!.query.after, checked[0]], [eventId(5), eventId(5)]);
    });
  }
});

test("replay() throws a PositionError when its position is beyond the log", async () => {
  for (const [reply, frontier] of [[EMPTY_LOG, null], [page(1, 0, 9, 7), eventId(7)]] as const) {
    await withFakeService([reply], async ({ client }) => {
      const read = collect(client.replay({ after: eventId(9) }));
      const error = await errorOf(PositionError, read);
      assert.equal(error.frontier, frontier);
    });
  }
});

test("replay() reports its position page by page, also for pages without events", async () => {
  const replies = [page(1, 2, 2, 9), page(5, 4, 6, 9), page(8, 8, 12, 12)];
  await withFakeService(replies, async ({ client }) => {
    const seen: string[] = [];
    const onPosition = (position: string) => void seen.push(`at ${position}`);
    for await (const { event_id } of client.replay({ kind: "rare", onPosition })) {
      seen.push(event_id);
    }
    const [first, second, last] = [1, 2, 8].map(eventId);
    const expected = [first, second, `at ${eventId(2)}`, `at ${eventId(6)}`, last];
    assert.deepEqual(seen, [...expected, `at ${eventId(12)}`]);
  });
});
