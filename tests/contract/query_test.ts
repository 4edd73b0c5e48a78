/** `GET /v1/events`, finite: query strings and pages. */
import assert from "node:assert/strict";
import { REPLAY_WHOLE_BYTES_MAX } from "../../src/api/replay_response.ts";
import { test } from "../support/tested_service.ts";
import { request } from "../support/http_client.ts";
import { exchange } from "../support/raw_client.ts";
import { stubLog, stubReplay } from "../support/stub_log.ts";
import {
  assertError,
  batchWith,
  casesOf,
  commit,
  event,
  NO_EVENT_ID,
  replayPage,
} from "./support/api.ts";
import { FollowReader } from "./support/follow_reader.ts";
import { get } from "./support/raw_requests.ts";
import { withService } from "./support/served.ts";
import { withServedLog } from "./support/served_log.ts";

const UUID_V4 = "00000000-0000-4000-8000-000000000000";

const REFUSED = casesOf({
  invalid_request: {
    "a parameter is known": "offset=1",
    "a parameter's name is in lowercase": "Limit=1",
    "a parameter has a name": "=1",
    "a parameter occurs once": "source=a&source=a",
    "a parameter occurs once, however encoded": "limit=1&l%69mit=1",
    "a percent sign is followed by two digits": "source=%",
    "percent-encoding is hexadecimal": "source=%zz",
    "percent-encoding decodes to UTF-8": "record_key=%ff",
    "percent-encoding is not overlong": "record_key=%C0%80",
    "percent-encoding decodes to no surrogates": "record_key=%ed%a0%80",
    "a follow's parameters are known": "follow=true&through=1",
  },
  invalid_replay_request: {
    "after is an event id": "after=1",
    "after is not empty": "after=",
    "after is a UUIDv7": `after=${UUID_V4}`,
    "after is in lowercase": `after=${NO_EVENT_ID.replace("8", "A")}`,
    "after has hyphens": `after=${NO_EVENT_ID.replaceAll("-", "")}`,
    "record_key is not empty": "record_key=",
    "record_key has at most 1,024 bytes": `record_key=${"%C3%A9".repeat(513)}`,
    "limit is positive": "limit=0",
    "limit is not negative": "limit=-1",
    "limit is at most replay.max_limit": "limit=100001",
    "limit is an integer": "limit=1.0",
    "limit is decimal": "limit=1e3",
    "limit consists of digits": "limit=0x10",
    "limit has no leading zero": "limit=01",
    "limit contains no space": "limit=+1",
    "limit consists of ASCII digits": "limit=%D9%A1",
    "limit is not empty": "limit=",
    "limit may have any number of digits": `limit=${"9".repeat(400)}`,
    "follow is true or false": "follow=1",
    "follow is in lowercase": "follow=TRUE",
    "follow is not empty": "follow",
    "a follow's other parameters are checked too": "follow=true&limit=0",
  },
});

for (const [code, rule, query] of REFUSED) {
  test(`replay: ${rule}, otherwise ${code}`, () =>
    withService(async ({ socketPath }) => {
      const reply = await request(socketPath, { path: `/v1/events?${query}` });
      assertError(reply, code);
    }));
}

const TAKEN: Array<[rule: string, query: string, found: string[]]> = [
  ["an empty query string selects everything", "", ["a b", "a+b", "é&="]],
  ["empty pairs are ignored", "&&source=shop&", ["a b", "a+b", "é&="]],
  ["follow=false is a finite replay", "follow=false", ["a b", "a+b", "é&="]],
  ["a plus sign is a space", "record_key=a+b", ["a b"]],
  ["%20 is a space", "record_key=a%20b", ["a b"]],
  ["%2B is a plus sign", "record_key=a%2bb", ["a+b"]],
  ["percent-encoded UTF-8 is decoded", "record_key=%C3%A9%26%3D", ["é&="]],
  ["an equals sign in a value is literal", "record_key=%C3%A9%26=", ["é&="]],
  ["names are decoded too", "record%5fkey=a+b", ["a b"]],
  ["all filters must match", "record_key=a+b&stream=items", []],
  ["filters match exactly", "record_key=a", []],
  ["limit may be replay.max_limit", "limit=100000", ["a b", "a+b", "é&="]],
  ["limit bounds the page", "limit=2", ["a b", "a+b"]],
  ["after need not be an event", `after=${NO_EVENT_ID}`, ["a b", "a+b", "é&="]],
];

for (const [rule, query, found] of TAKEN) {
  test(`replay: ${rule}`, () =>
    withService(async ({ socketPath }) => {
      const events = ["a b", "a+b", "é&="].map((record_key) => event({ record_key }));
      await commit(socketPath, batchWith({ events }));
      const page = await replayPage(socketPath, query);
      assert.deepEqual(page.events.map(({ record_key }) => record_key), found);
    }));
}

test("replay: next_after is the frontier when the scan is exhausted, regardless of matches", () =>
  withService(async ({ socketPath }) => {
    const { first_event_id, last_event_id } = await commit(
      socketPath,
      batchWith({ events: [event({ kind: "wanted" }), event(), event()] }),
    );
    const some = await replayPage(socketPath, "kind=wanted");
    assert.deepEqual([some.last_event_id, some.next_after], [first_event_id, last_event_id]);
    const none = await replayPage(socketPath, "kind=other");
    assert.ok(!("last_event_id" in none));
    assert.equal(none.next_after, last_event_id);
    const cut = await replayPage(socketPath, "kind=upserted&limit=1");
    assert.equal(cut.next_after, cut.last_event_id);
    for (const page of [some, none, cut]) {
      assert.equal(page.snapshot_through_event_id, last_event_id);
    }
  }));

test("replay: without a limit, replay.default_limit applies, and replay.max_limit may be any", () =>
  withServedLog(async ({ socketPath }) => {
    await commit(socketPath, batchWith({ events: Array(5).fill(event()) }));
    assert.equal((await replayPage(socketPath)).events.length, 2);
    assert.equal((await replayPage(socketPath, "limit=3")).events.length, 3);
    const refused = await request(socketPath, { path: "/v1/events?limit=4" });
    assertError(refused, "invalid_replay_request");
  }, { handler: { replay: { defaultLimit: 2, maxLimit: 3 } } }));

/** Valid query values that no event can match. */
const UNMATCHABLE = [
  ...["source=Stripe", "source", "source=.a", `source=${"a".repeat(129)}`, "stream=a/b"],
  ...["stream=", "stream=items%22,%22kind", "kind=", `kind=${"k".repeat(129)}`, "kind=%00%0A"],
];

test("replay and follow: an impossible source, stream or kind matches nothing", () =>
  withService(async ({ socketPath }) => {
    const { last_event_id } = await commit(socketPath, batchWith({}));
    for (const query of UNMATCHABLE) {
      const page = await replayPage(socketPath, query);
      assert.deepEqual(
        [page.events, page.next_after, page.snapshot_through_event_id],
        [[], last_event_id, last_event_id],
        query,
      );
      const follow = await FollowReader.open(socketPath, `&${query}`);
      assert.equal((await follow.nextOf("events")).next_after, last_event_id, query);
      assert.equal((await follow.nextOf("caught_up")).next_after, last_event_id, query);
      follow.close();
    }
  }));

/** Texts that could mislead a search for quotes and commas, or for their encodings. */
const HARD_TEXTS = [
  ...["1", "11", '"', '","', '","kind":"', '","kind":"x","', "\\", "\\\\", '\\"', "a\\"],
  ...["\n", " ", "/", "\u0000\u001f\u007f", "ä", "a\u0308", "€ 𝄞 👩‍👩‍👧", "\u2028", '{"commit":'],
];

test("replay: record keys and kinds match exactly, with any characters", () =>
  withService(async ({ socketPath }) => {
    const events = HARD_TEXTS.map((text) => event({ record_key: text, kind: text }));
    await commit(socketPath, batchWith({ events }));
    for (const text of HARD_TEXTS) {
      for (const member of ["record_key", "kind"]) {
        const page = await replayPage(socketPath, `${member}=${encodeURIComponent(text)}`);
        assert.deepEqual(page.events.map(({ kind }) => kind), [text]);
      }
    }
  }));

test("replay: next_after is the request's after if that is past the frontier", () =>
  withService(async ({ socketPath }) => {
    const beyond = "ffffffff-ffff-7fff-bfff-ffffffffffff";
    const empty = await replayPage(socketPath, `after=${beyond}`);
    assert.deepEqual([empty.next_after, empty.snapshot_through_event_id], [beyond, null]);
    const { last_event_id } = await commit(socketPath, batchWith({}));
    const page = await replayPage(socketPath, `after=${beyond}`);
    assert.deepEqual(page.events, []);
    assert.deepEqual([page.next_after, page.snapshot_through_event_id], [beyond, last_event_id]);
  }));

test("replay: a page ends at 16 MiB, and the replay continues at next_after", () =>
  withService(async ({ socketPath }) => {
    const payload = "x".repeat(1_000_000);
    const events = Array.from({ length: 20 }, (_, n) => event({ record_key: `${n}`, payload }));
    await commit(socketPath, batchWith({ events }));
    const first = await replayPage(socketPath);
    assert.equal(first.events.length, 16);
    assert.equal(first.next_after, first.last_event_id);
    const second = await replayPage(socketPath, `after=${first.next_after}`);
    assert.deepEqual(second.events.map(({ record_key }) => record_key), ["16", "17", "18", "19"]);
    assert.equal(second.next_after, second.snapshot_through_event_id);
    const head = await request(socketPath, { method: "HEAD" });
    assert.deepEqual([head.status, head.body.length], [200, 0]);
  }));

test("replay: an event over 16 MiB gets its own page", () =>
  withService(async ({ socketPath }) => {
    const payload = "x".repeat(17 * 1024 * 1024);
    await commit(socketPath, batchWith({ events: [event({ payload }), event()] }));
    const page = await replayPage(socketPath);
    assert.equal(page.events.length, 1);
    assert.equal(page.events[0]!.payload, payload);
  }));

test("replay: an error before the status line is a 500; a later error breaks the connection", async () => {
  const large = JSON.stringify("x".repeat(REPLAY_WHOLE_BYTES_MAX));
  const failure = new Error("read failed: EIO");
  for (const pieces of [["1", failure], [large, "1", failure]]) {
    const log = stubLog({ replay: () => stubReplay(pieces) });
    await withServedLog(async (server) => {
      const response = await exchange(server.socketPath, get("/v1/events"));
      const isStreamed = pieces.length === 3;
      assert.equal(response?.status, isStreamed ? 200 : 500);
      assert.equal(response?.isComplete, !isStreamed);
      assert.equal(server.reports.length, 1);
      assert.match(server.reports[0]!, /^GET \/v1\/events failed: Error: read failed: EIO/);
    }, { log: () => log });
  }
});
