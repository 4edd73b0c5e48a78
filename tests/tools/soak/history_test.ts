/** What readers, followers and listings saw, held against a history made by hand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReplayFilter } from "../../../src/client/replay.ts";
import { sha256Hex } from "../../../src/event/hash.ts";
import type { CommittedEvent } from "../../../src/event/types.ts";
import { EventTrace } from "../../../tools/soak/event_trace.ts";
import { History } from "../../../tools/soak/history.ts";
import { Observations } from "../../../tools/soak/observations.ts";

/** More than a trace has room for at first. */
const EVENTS = 100;

function event(number: number): CommittedEvent {
  return {
    event_id: `019b76da-a800-7000-8000-${number.toString(16).padStart(12, "0")}`,
    source: number % 2 === 0 ? "crm" : "shop",
    stream: number % 3 === 0 ? "orders" : "customers",
    record_key: String(number),
    kind: "upserted",
    observed_at: "2026-01-01T00:00:00.000Z",
    payload: null,
    content_hash: "",
    batch_id: "batch",
    event_hash: sha256Hex(String(number)),
  };
}

const id = (number: number) => event(number).event_id;

/** Events 1 to 100. */
function history(): History {
  const history = new History();
  for (let number = 1; number <= EVENTS; number++) history.add(event(number));
  return history;
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, place) => first + place);
}

interface Seen {
  after: number | null;
  through: number;
  numbers: number[];
  filter?: ReplayFilter;
}

function observation({ after, through, numbers, filter = {} }: Seen) {
  const seen = new EventTrace();
  for (const number of numbers) seen.add(event(number));
  const position = after === null ? null : id(after);
  return { observer: "follower", filter, after: position, through: id(through), seen };
}

const FINE: Record<string, Seen> = {
  "all of it": { after: null, through: 100, numbers: range(1, 100) },
  "a part of it": { after: 10, through: 20, numbers: range(11, 20) },
  "nothing": { after: 20, through: 20, numbers: [] },
  "a source": { after: 10, through: 15, numbers: [12, 14], filter: { source: "crm" } },
  "a stream of a source": {
    after: null,
    through: 20,
    numbers: [6, 12, 18],
    filter: { source: "crm", stream: "orders" },
  },
  "a kind that nobody has": { after: 1, through: 20, numbers: [], filter: { kind: "other" } },
};

for (const [name, seen] of Object.entries(FINE)) {
  test(`History agrees with who saw ${name}`, () => history().check(observation(seen)));
}

const WRONG: Record<string, [Seen, RegExp]> = {
  "a gap": [
    { after: 10, through: 14, numbers: [11, 13, 14] },
    /saw 3 of 4 events .* place 1 is .*0d, not .*0c/,
  ],
  "an event twice": [{ after: 10, through: 12, numbers: [11, 11, 12] }, /place 1 is .*0b, not/],
  "another order": [{ after: 10, through: 12, numbers: [12, 11] }, /place 0 is .*0c, not .*0b/],
  "an event too few": [{ after: 10, through: 12, numbers: [11] }, /place 1 is nothing, not .*0c/],
  "an event too many": [{ after: 10, through: 12, numbers: [11, 12, 13] }, /not nothing/],
  "an event before its place": [{ after: 10, through: 12, numbers: [10, 11, 12] }, /place 0/],
  "what its filter leaves out": [
    { after: 10, through: 12, numbers: [11, 12], filter: { source: "crm" } },
    /place 0 is .*0b, not .*0c/,
  ],
};

for (const [name, [seen, message]] of Object.entries(WRONG)) {
  test(`History disagrees with who saw ${name}`, () => {
    assert.throws(() => history().check(observation(seen)), message);
  });
}

test("History disagrees with who saw another event under the same id", () => {
  const seen = new EventTrace();
  seen.add({ ...event(11), event_hash: sha256Hex("other") });
  const other = { observer: "reader", filter: {}, after: id(10), through: id(11), seen };
  assert.throws(() => history().check(other), /place 0/);
});

const ROWS = [
  { source: "crm", stream: "customers", event_count: 4, frontier_event_id: id(10) },
  { source: "crm", stream: "orders", event_count: 1, frontier_event_id: id(6) },
  { source: "shop", stream: "customers", event_count: 3, frontier_event_id: id(7) },
  { source: "shop", stream: "orders", event_count: 2, frontier_event_id: id(9) },
];

test("History agrees with a listing of that moment alone", () => {
  const listing = { observer: "reader", through: id(10), streams: ROWS };
  history().checkListing(listing);
  assert.throws(() => history().checkListing({ ...listing, through: id(11) }), /listed shop/);
  const fewer = { ...listing, streams: ROWS.slice(1) };
  assert.throws(() => history().checkListing(fewer), /did not list crm\/customers/);
  const more = { ...ROWS[0]!, source: "other" };
  const unknown = { ...listing, streams: [...ROWS, more] };
  assert.throws(() => history().checkListing(unknown), /no such stream/);
});

test("Observations are checked once the history covers them, and kept until then", async () => {
  const observations = new Observations();
  const { signal } = new AbortController();
  await observations.add(observation({ after: 98, through: 101, numbers: [99, 100, 102] }), signal);
  await observations.add(observation({ after: 1, through: 2, numbers: [2] }), signal);
  await observations.addListing({ observer: "reader", through: id(10), streams: ROWS }, signal);
  const grown = history();
  assert.equal(observations.check(grown), 2);
  assert.equal(observations.length, 1);
  grown.add(event(101));
  assert.throws(() => observations.check(grown), /place 2 is .*66, not .*65/);
});
