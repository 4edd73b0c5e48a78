/** Follows a scripted service whose connections end in every possible way. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { ConnectionError, PositionError, ProtocolError } from "../../src/client/errors.ts";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import { CLIENT_ATTEMPTS_MAX } from "../../src/client/transport.ts";
import type { FollowItem, Reconnect } from "../../src/client/follow.ts";
import { CLIENT_BACKOFF_MS_MAX } from "../../src/client/retry.ts";
import {
  collect,
  eventId,
  events,
  json,
  lines,
  loseConnection,
  refuse,
  type Reply,
  withFakeService,
} from "./support/fake_service.ts";
import { withServing } from "../support/deployment.ts";

type Phase = "snapshot" | "live";

/** An `events` record, empty when `to` is before `from`. */
function record(phase: Phase, from: number, to: number, nextAfter = to): Record<string, unknown> {
  return {
    type: "events",
    phase,
    events: events(from, to),
    ...(to < from ? {} : { last_event_id: eventId(to) }),
    next_after: eventId(nextAfter),
    snapshot_through_event_id: eventId(nextAfter),
  };
}

function caughtUp(at: number): Record<string, unknown> {
  return { type: "caught_up", next_after: eventId(at), snapshot_through_event_id: eventId(at) };
}

function end(reason: string, detail?: string): Record<string, unknown> {
  return { type: "end", reason, last_event_id: null, ...(detail === undefined ? {} : { detail }) };
}

/** Formats an item as a short string. */
function shorten(item: FollowItem): string {
  if (item.type === "event") return `${item.phase} ${Number(`0x${item.event.event_id.slice(-6)}`)}`;
  return item.type === "end" ? `end ${item.reason}` : item.type;
}

test("follow() yields events with their phase, caught_up between phases, and the end", async () => {
  const records = [
    record("snapshot", 1, 2),
    { type: "of_tomorrow" },
    record("snapshot", 3, 3),
    caughtUp(3),
    record("live", 4, 5),
    end("writer_poisoned", "restart the service"),
  ];
  await withFakeService([lines(records)], async ({ client, seen }) => {
    const items = await collect(client.follow({ after: eventId(0), source: "shop", limit: 2 }));
    assert.deepEqual(items.map(shorten), [
      "snapshot 1",
      "snapshot 2",
      "snapshot 3",
      "caught_up",
      "live 4",
      "live 5",
      "end writer_poisoned",
    ]);
    assert.deepEqual(items.at(-1), {
      type: "end",
      reason: "writer_poisoned",
      detail: "restart the service",
      nextAfter: eventId(5),
    });
    const query = { follow: "true", after: eventId(0), source: "shop", limit: "2" };
    assert.deepEqual(seen.map((each) => each.query), [query]);
  });
});

test("followRecords() yields records with the cursor to persist", async () => {
  const replies = [lines([record("snapshot", 1, 0, 7), caughtUp(7), end("replay_failed")])];
  await withFakeService(replies, async ({ client }) => {
    assert.deepEqual(await collect(client.followRecords()), [
      {
        type: "events",
        phase: "snapshot",
        events: [],
        nextAfter: eventId(7),
        snapshotThroughEventId: eventId(7),
      },
      { type: "caught_up", nextAfter: eventId(7), snapshotThroughEventId: eventId(7) },
      { type: "end", reason: "replay_failed", nextAfter: eventId(7) },
    ]);
  });
});

const FINAL = lines([record("snapshot", 9, 9), end("writer_poisoned")]);
const INTERRUPTIONS: [string, Reply, string | undefined][] = [
  ["the service shuts down", lines([record("snapshot", 1, 2), end("shutdown")]), eventId(2)],
  ["the service closes the session", lines([caughtUp(4), end("session_closed")]), eventId(4)],
  ["the follower was too slow", lines([record("live", 1, 2), end("buffer_exceeded")]), eventId(2)],
  ["the reason is unknown", lines([caughtUp(3), end("of_tomorrow")]), eventId(3)],
  ["the response ends without a reason", lines([record("live", 1, 3)]), eventId(3)],
  ["the connection is lost", lines([record("live", 1, 3)], "lose"), eventId(3)],
  ["nothing matched so far", lines([record("snapshot", 1, 0, 6)], "lose"), eventId(6)],
  ["there is no response", loseConnection, undefined],
  ["there are too many followers", refuse(429, "overloaded"), undefined],
  ["a record is truncated", cutLine(record("snapshot", 1, 2)), undefined],
];
for (const [name, reply, after] of INTERRUPTIONS) {
  test(`follow() resumes after its last record when ${name}`, async () => {
    await withFakeService([reply, FINAL], async ({ client, seen }) => {
      const items = await collect(client.follow());
      assert.equal(shorten(items.at(-2)!), "snapshot 9");
      assert.deepEqual(seen.map(({ query }) => query.after), [undefined, after]);
    });
  });
}

/** Sends half a record, then closes the connection. */
function cutLine(whole: Record<string, unknown>): Reply {
  return (response) => {
    const text = JSON.stringify(whole);
    response.write(text.slice(0, text.length / 2), () => response.destroy());
  };
}

test("follow() rejects a repeated event", async () => {
  const replies = [lines([record("snapshot", 1, 3)], "lose"), lines([record("snapshot", 3, 4)])];
  await withFakeService(replies, async ({ client }) => {
    await assert.rejects(collect(client.follow()), ProtocolError);
  });
});

test("follow() throws a PositionError when the log was restored from an older backup", async () => {
  const replies = [lines([record("snapshot", 1, 3)], "lose"), lines([record("snapshot", 3, 2, 2)])];
  await withFakeService(replies, async ({ client }) => {
    await assert.rejects(collect(client.follow()), PositionError);
  });
});

test("follow() throws a PositionError on a reconnect to a log that lost its position and grew", async () => {
  const replies = [lines([record("snapshot", 1, 3)], "lose"), lines([record("snapshot", 4, 9)])];
  await withFakeService(replies, async ({ client, lost, checked }) => {
    const items = client.follow();
    for (let n = 1; n <= 3; n++) await items.next();
    lost.add(eventId(3));
    await assert.rejects(items.next(), PositionError);
    assert.deepEqual(checked, [eventId(3)]);
  });
});

test("follow() starts at a time, and returns to it until it has reached an event", async () => {
  const start = "019c1159-7000-7000-8000-000000000000";
  const unreached = { type: "caught_up", next_after: start, snapshot_through_event_id: eventId(7) };
  const replies = [lines([unreached], "lose"), lines([record("live", 8, 8)], "lose"), FINAL];
  await withFakeService(replies, async ({ client, seen, checked }) => {
    const records = await collect(client.followRecords({ since: Date.UTC(2026, 0, 31) }));
    assert.deepEqual(records.map(({ nextAfter }) => nextAfter), [
      null,
      ...[8, 9, 9].map(eventId),
    ]);
    assert.deepEqual(seen.map(({ query }) => query.after), [start, start, eventId(8)]);
    assert.deepEqual(checked, [eventId(8)]);
  });
});

for (const reason of ["writer_poisoned", "replay_failed"]) {
  test(`follow() ends after ${reason}, unless told to reconnect`, async () => {
    const replies = [lines([end(reason)]), lines([end("shutdown")])];
    await withFakeService(replies, async ({ client, seen }) => {
      assert.deepEqual((await collect(client.follow())).map(shorten), [`end ${reason}`]);
      assert.equal(seen.length, 1);
    });
    await withFakeService(replies, async ({ client }) => {
      const reconnect = (ended: { reason: string }) => ended.reason === reason;
      assert.deepEqual((await collect(client.follow({ reconnect }))).map(shorten), [
        "end shutdown",
      ]);
    });
  });
}

test("follow() gives up after too many consecutive failures, and reports each", async () => {
  await withFakeService([loseConnection], async ({ client, seen, timing }) => {
    const reconnects: Reconnect[] = [];
    const onReconnect = (reconnect: Reconnect) => void reconnects.push(reconnect);
    await assert.rejects(collect(client.follow({ onReconnect })), ConnectionError);
    assert.equal(seen.length, CLIENT_ATTEMPTS_MAX);
    assert.deepEqual(reconnects.map(({ pauseMs }) => pauseMs), timing.pausesMs);
    assert.deepEqual(reconnects.map(({ failures }) => failures).slice(0, 3), [1, 2, 3]);
    assert(reconnects.every(({ reason }) => reason instanceof ConnectionError));
  });
});

test("follow() yields the end record when its last attempt also ends with a shutdown", async () => {
  await withFakeService([lines([end("shutdown")])], async ({ client, seen }) => {
    assert.deepEqual((await collect(client.follow())).map(shorten), ["end shutdown"]);
    assert.equal(seen.length, 3);
  }, { attemptsMax: 3 });
});

test("follow() resets its failure count after events or a long session", async () => {
  const replies: Reply[] = [];
  for (let n = 1; n <= 7; n++) replies.push(lines([record("live", n, n)]), loseConnection);
  for (let n = 1; n <= 7; n++) replies.push(lines([caughtUp(7)]), loseConnection);
  replies.push(lines([end("writer_poisoned")]));
  await withFakeService(replies, async ({ client, timing }) => {
    const items: FollowItem[] = [];
    for await (const item of client.follow()) {
      items.push(item);
      if (item.type === "caught_up") timing.advance(CLIENT_BACKOFF_MS_MAX);
    }
    assert.equal(items.filter(({ type }) => type === "event").length, 7);
    assert.equal(shorten(items.at(-1)!), "end writer_poisoned");
  }, { attemptsMax: 3 });
});

const NONSENSE: [string, string | Uint8Array][] = [
  ["invalid JSON", "hello\n"],
  ["a value that is not an object", "1\n"],
  ["an empty line", "\n"],
  ["a record without its members", '{"type":"events"}\n'],
  ["malformed UTF-8", Buffer.from([0x22, 0xff, 0x22, 0x0a])],
];
for (const [name, text] of NONSENSE) {
  test(`follow() rejects ${name}`, async () => {
    await withFakeService([(response) => void response.end(text)], async ({ client, seen }) => {
      await assert.rejects(collect(client.follow()), ProtocolError);
      assert.equal(seen.length, 1);
    });
  });
}

/** Ends a client that asks for more than it should, which would otherwise wait for events. */
const REFUSAL = refuse(400, "invalid_request");

test("follow() throws its signal's abort reason while waiting for events", async () => {
  const abort = new AbortController();
  const reason = new Error("enough");
  await withFakeService([lines([caughtUp(1)], "stay"), REFUSAL], async ({ client, seen }) => {
    const iterating = (async () => {
      for await (const item of client.follow({ signal: abort.signal })) {
        if (item.type === "caught_up") abort.abort(reason);
      }
    })();
    await assert.rejects(iterating, reason);
    assert.equal(seen.length, 1);
  });
});

test("follow() closes the connection when the caller leaves the loop", async () => {
  const closed = Promise.withResolvers<void>();
  const reply: Reply = async (response, request) => {
    response.once("close", closed.resolve);
    await lines([record("live", 1, 3)], "stay")(response, request);
  };
  await withFakeService([reply, REFUSAL], async ({ client }) => {
    for await (const item of client.follow()) {
      if (item.type === "event") break;
    }
    await closed.promise;
  });
});

test("follow() reads from the connection only on demand", async () => {
  let reads = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      reads++;
      controller.enqueue(
        new TextEncoder().encode(JSON.stringify(record("live", reads, reads)) + "\n"),
      );
    },
  }, { highWaterMark: 0 });
  const client = new EventLogClient(() => Promise.resolve(new Response(body)));
  const items = client.follow();
  for (let taken = 1; taken <= 5; taken++) {
    await items.next();
    assert.equal(reads, taken);
  }
  await items.return();
  assert.equal(reads, 5);
});

test("follow() calls onPosition once the events before it are consumed, also without events", async () => {
  const records = [
    record("snapshot", 1, 2),
    record("snapshot", 4, 3, 6),
    caughtUp(6),
    record("live", 7, 7, 8),
    record("live", 10, 9, 9),
    end("writer_poisoned"),
  ];
  await withFakeService([lines(records)], async ({ client }) => {
    const seen: string[] = [];
    const onPosition = async (position: string) => {
      await Promise.resolve();
      seen.push(`at ${Number(`0x${position.slice(-6)}`)}`);
    };
    for await (const item of client.follow({ kind: "rare", onPosition })) seen.push(shorten(item));
    assert.deepEqual(seen, [
      ...["snapshot 1", "snapshot 2", "at 2", "at 6", "caught_up"],
      ...["live 7", "at 8", "at 9", "end writer_poisoned"],
    ]);
  });
});

test("follow() does not call onPosition for events that were not all consumed", async () => {
  await withFakeService([lines([record("snapshot", 1, 2), caughtUp(2)])], async ({ client }) => {
    const onPosition = () => assert.fail("the second event was not consumed");
    for await (const item of client.follow({ onPosition })) if (item.type === "event") break;
  });
});

test("followRecords() throws what onPosition throws, even if it looks like a lost connection", async () => {
  await withFakeService([lines([record("snapshot", 1, 2)])], async ({ client, seen }) => {
    const error = new ConnectionError("the database is gone");
    const onPosition = () => Promise.reject(error);
    await assert.rejects(collect(client.followRecords({ onPosition })), error);
    assert.equal(seen.length, 1);
  });
});

test("follow() with after: now yields only later events; replay() yields none", () =>
  withServing(async (deployment) => {
    await deployment.append("before");
    const client = new EventLogClient(deployment.serving.fetch);
    assert.deepEqual(await collect(client.replay({ after: "now" })), []);
    const batchIds: string[] = [];
    for await (const item of client.follow({ after: "now" })) {
      if (item.type === "caught_up") await deployment.append("later");
      if (item.type !== "event") continue;
      batchIds.push(item.event.batch_id);
      break;
    }
    assert.deepEqual(batchIds, ["later"]);
  }));

test("follow() calls onReconnected with the position at which it continues", async () => {
  const replies = [lines([record("snapshot", 1, 2)], "lose"), loseConnection, FINAL];
  await withFakeService(replies, async ({ client }) => {
    const positions: (string | null)[] = [];
    await collect(client.follow({ onReconnected: (position) => positions.push(position) }));
    assert.deepEqual(positions, [eventId(2)]);
  });
});

test("replay() and follow() throw an AbortError between two events of a page", async () => {
  const page = {
    events: events(1, 3),
    next_after: eventId(3),
    snapshot_through_event_id: eventId(3),
  };
  await withFakeService(
    [json(200, page), lines([record("snapshot", 1, 3)])],
    async ({ client }) => {
      for (const method of ["replay", "follow"] as const) {
        const abort = new AbortController();
        let seen = 0;
        const read = async () => {
          for await (const _ of client[method]({ signal: abort.signal })) {
            seen++;
            abort.abort();
          }
        };
        await assert.rejects(read(), { name: "AbortError" });
        assert.equal(seen, 1);
      }
    },
  );
});
