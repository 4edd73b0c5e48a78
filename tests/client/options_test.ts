/** Wrong arguments and unknown options are rejected; JavaScript would otherwise ignore them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Batch } from "../../src/client/event_log_client.ts";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { FollowOptions } from "../../src/client/follow.ts";
import type { EventLogClientOptions } from "../../src/client/transport.ts";
import type { ReplayOptions } from "../../src/client/replay.ts";
import type { Fetch } from "../../src/client/unix_fetch.ts";
import { collect, FakeTiming } from "./support/fake_service.ts";

const client = new EventLogClient(() => assert.fail("nothing is sent"));
/** The client without its types, as JavaScript callers use it. */
const untyped = client as unknown as Record<string, (...args: unknown[]) => unknown>;
const reading = (method: string, options: object) => () =>
  collect(untyped[method]!(options) as AsyncIterable<unknown>);

const MISTAKES: [call: () => unknown, message: string][] = [
  [reading("replay", { record_key: "42" }), "replay() has no option record_key; use recordKey"],
  [
    reading("replayPages", { sources: "a" }),
    "replay() has no option sources; use one of after, afterHa",
  ],
  [
    reading("follow", { record_key: "4" }),
    "follow() has no option record_key; use recordKey",
  ],
  [
    reading("followRecords", { onreconnect: 0 }),
    "follow() has no option onreconnect; use onReconnect",
  ],
  [() => untyped.streams!({ stream: "a" }), "streams() has no option stream; use one of source, s"],
  [
    () => untyped.append!({ batch_id: "1" }),
    "append() has no option batch_id; use batchId",
  ],
  [
    () => new EventLogClient(fetch, { attempts_max: 1 } as object),
    "EventLogClient has no option attempts_max; use attemptsMax",
  ],
  [
    () => new EventLogClient("data/ground.sock" as unknown as Fetch),
    "EventLogClient needs a fetch function, such as unixFetch(path), but got string",
  ],
  [
    () => new EventLogClient(fetch, "secret" as unknown as object),
    "EventLogClient expects an object, but got string",
  ],
  [() => new EventLogClient(fetch, null!), "EventLogClient expects an object, but got null"],
  [reading("replay", "an id" as unknown as object), "replay() expects an object, but got string"],
  [reading("replay", null!), "replay() expects an object, but got null"],
  [
    () => untyped.append!({ source: "a", batchId: "b", events: [{ recordKey: "1" }] }),
    "an event has no member recordKey; use record_key",
  ],
  [() => untyped.append!({ source: "a", batchId: "b" }), "append() expects an array of events"],
  [
    () => untyped.append!({ source: "a", batchId: "b", events: [] }, { signals: 1 }),
    "append() has no option signals; use one of signal",
  ],
  [() => untyped.retire!("a", { signals: 1 }), "retire() has no option signals; use one of"],
  [() => untyped.writer!({ source: "a", batch_id: "b" }), "writer() has no option batch_id; use"],
  [() => untyped.writer!({}), "writer() needs a source"],
];

/** `Required` makes the compiler report any option that is missing here. */
const READ: Required<ReplayOptions> = {
  after: null,
  afterHash: "0",
  since: 0,
  source: "a",
  stream: "b",
  recordKey: "c",
  kind: "d",
  limit: 1,
  verify: true,
  onPosition: () => {},
  signal: new AbortController().signal,
};
const FOLLOW: Required<FollowOptions> = {
  ...READ,
  reconnect: () => true,
  onReconnect() {},
  onReconnected() {},
};

test("the client accepts every option that its types declare", async () => {
  const nothing = { events: [], next_after: null, snapshot_through_event_id: null, streams: [] };
  const receipt = { status: "committed", first_event_id: "1", last_event_id: "1" };
  const options: Required<EventLogClientOptions> = {
    token: "t",
    attemptsMax: 1,
    writeTimeoutMs: 1000,
    readTimeoutMs: 1000,
    socketWaitMs: 1000,
    onRetry() {},
    timing: new FakeTiming(),
  };
  const fetch: Fetch = (_, init) =>
    Promise.resolve(Response.json(init?.method === "POST" ? receipt : nothing));
  const accepting = new EventLogClient(fetch, options);
  await collect(accepting.replay(READ));
  await accepting.streams({ source: "a", signal: READ.signal });
  const batch: Required<Batch> = {
    source: "a",
    batchId: "b",
    events: [],
    precondition: { stream: "c", expectedFrontier: null },
  };
  await accepting.append(batch);
  const ended = '{"type":"end","reason":"replay_failed"}\n';
  const ending = new EventLogClient(() => Promise.resolve(new Response(ended)), { attemptsMax: 1 });
  await collect(ending.follow(FOLLOW));
});

for (const [call, message] of MISTAKES) {
  test(`the client rejects a mistake: ${message.slice(0, 60)}`, async () => {
    const error = await Promise.resolve().then(call).catch((error) => error);
    assert(error instanceof TypeError, String(error));
    assert.ok(error.message.startsWith(message), error.message);
  });
}
