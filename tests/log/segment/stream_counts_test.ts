import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { StreamSummary } from "../../../src/event/types.ts";
import { streamKey } from "../../../src/log/segment/segment_list.ts";
import { StreamCounts } from "../../../src/log/segment/stream_counts.ts";
import {
  type Random,
  randomInteger,
  randomItem,
  seededRandom,
  testSeed,
} from "../../../tools/support/random.ts";

/** Names where one begins like another, with each kind of character that a name can hold next. */
const NAMES = [
  "a",
  "a-",
  "a-b",
  "a.",
  "a.b",
  "a0",
  "a_",
  "a_b",
  "aa",
  "ab",
  "0",
  "9",
  "_",
  "_a",
  "z",
];

/** An id whose order is that of `place`. */
function idAt(place: number): string {
  return `019b7c4e-2d37-7a01-8f00-${place.toString(16).padStart(12, "0")}`;
}

function byBytes(a: StreamSummary, b: StreamSummary): number {
  return Buffer.compare(Buffer.from(a.source), Buffer.from(b.source)) ||
    Buffer.compare(Buffer.from(a.stream), Buffer.from(b.stream));
}

/** All of `counts`, in pages of a size. */
function pagedRows(counts: StreamCounts, source: string | undefined, limit: number) {
  const rows: StreamSummary[] = [];
  for (let after = "";;) {
    const page = counts.rows(after, source, limit);
    assert.ok(page.length <= limit);
    rows.push(...page);
    if (page.length < limit) return rows;
    after = streamKey(page.at(-1)!.source, page.at(-1)!.stream);
  }
}

/** Adds a random growth to both. */
function grow(random: Random, place: number, counts: StreamCounts, rows: StreamSummary[]): void {
  const source = randomItem(random, NAMES);
  const stream = randomItem(random, NAMES);
  const events = randomInteger(random, 1, 3);
  counts.add(source, stream, events, idAt(place));
  const row = rows.find((row) => row.source === source && row.stream === stream);
  if (row === undefined) {
    rows.push({ source, stream, frontier_event_id: idAt(place), event_count: events });
    rows.sort(byBytes);
  } else {
    row.event_count += events;
    row.frontier_event_id = idAt(place);
  }
}

test("StreamCounts.rows() orders by the bytes of source, then of stream", () => {
  const counts = new StreamCounts();
  const expected: StreamSummary[] = [];
  let place = 0;
  for (const source of NAMES.toReversed()) {
    for (const stream of NAMES) {
      counts.add(source, stream, 1, idAt(place));
      expected.push({ source, stream, frontier_event_id: idAt(place), event_count: 1 });
      place += 1;
    }
  }
  assert.deepEqual(counts.rows("", undefined, Infinity), expected.sort(byBytes));
});

test("StreamCounts.rows() starts after a key that it need not hold", () => {
  const counts = new StreamCounts();
  for (const name of ["a", "a-b", "b"]) counts.add(name, "s", 1, idAt(1));
  const sourcesAfter = (source: string, stream: string) =>
    counts.rows(streamKey(source, stream), undefined, Infinity).map((row) => row.source);
  assert.deepEqual(sourcesAfter("a", "r"), ["a", "a-b", "b"]);
  assert.deepEqual(sourcesAfter("a", "s"), ["a-b", "b"]);
  assert.deepEqual(sourcesAfter("a-a", "s"), ["a-b", "b"]);
  assert.deepEqual(sourcesAfter("a-b", "t"), ["b"]);
  assert.deepEqual(sourcesAfter("c", "s"), []);
});

test("StreamCounts.rows() of a source gives no other source's, whatever the key it starts after", () => {
  const counts = new StreamCounts();
  for (const source of NAMES) counts.add(source, "s", 1, idAt(1));
  for (const source of NAMES) {
    assert.deepEqual(counts.rows("", source, Infinity).map((row) => row.source), [source]);
  }
  assert.deepEqual(counts.rows(streamKey("a", "s"), "a", Infinity), []);
  assert.equal(counts.rows(streamKey("0", "s"), "a", Infinity).length, 1);
  assert.deepEqual(counts.rows(streamKey("b", "s"), "a", Infinity), []);
  assert.deepEqual(counts.rows("", "a-c", Infinity), []);
});

const seed = testSeed();

test(`StreamCounts counts as a plain list does, in pages as it grows (SEED=${seed})`, () => {
  const random = seededRandom(seed);
  for (let run = 0; run < 50; run++) {
    const counts = new StreamCounts();
    const rows: StreamSummary[] = [];
    const additions = randomInteger(random, 0, 60);
    for (let place = 0; place < additions; place++) {
      grow(random, place, counts, rows);
      if (random() < 0.7) continue;
      const source = random() < 0.5 ? undefined : randomItem(random, NAMES);
      const wanted = rows.filter((row) => source === undefined || row.source === source);
      assert.deepEqual(pagedRows(counts, source, randomInteger(random, 1, 7)), wanted);
    }
    assert.equal(counts.size, rows.length);
    for (const { source, stream, frontier_event_id } of rows) {
      assert.equal(counts.frontier(source, stream), frontier_event_id);
    }
  }
});

test("StreamCounts.copy() stays as it is, and so does the original when the copy grows", () => {
  const counts = new StreamCounts();
  counts.add("a", "s", 1, idAt(1));
  const copy = counts.copy();
  counts.add("a", "s", 2, idAt(2));
  counts.add("a", "r", 1, idAt(3));
  copy.add("a", "t", 5, idAt(4));
  const summary = (counts: StreamCounts) =>
    counts.rows("", undefined, Infinity).map((row) => [row.stream, row.event_count]);
  assert.deepEqual(summary(counts), [["r", 1], ["s", 3]]);
  assert.deepEqual(summary(copy), [["s", 1], ["t", 5]]);
});

test("StreamCounts.frontier() is null for a stream without events, also beside one that begins so", () => {
  const counts = new StreamCounts();
  assert.equal(counts.frontier("a", "s"), null);
  counts.add("a", "ss", 1, idAt(1));
  assert.equal(counts.frontier("a", "s"), null);
});

test("StreamCounts.add() refuses a frontier that does not move on", () => {
  const counts = new StreamCounts();
  counts.add("a", "s", 1, idAt(2));
  assert.throws(() => counts.add("a", "s", 1, idAt(2)), /frontier moves on/);
  assert.throws(() => counts.add("a", "s", 1, idAt(1)), /frontier moves on/);
});

test("StreamCounts.addEarlier() adds to what came later, and is told the last event of a new stream", () => {
  const counts = new StreamCounts();
  const names = Buffer.from("-a-s-t-");
  const nameAt = (start: number) => ({ bytes: names, start, end: start + 1 });
  const ids = Buffer.from(idAt(7).replaceAll("-", ""), "hex");
  assert.equal(counts.addEarlier(nameAt(1), nameAt(3), 2), 0);
  assert.equal(counts.addEarlier(nameAt(1), nameAt(5), 1), 1);
  assert.equal(counts.addEarlier(nameAt(1), nameAt(3), 3), null);
  counts.setLastEvent(0, ids, 0);
  counts.setLastEvent(1, Buffer.concat([Buffer.alloc(3), ids]), 3);
  assert.deepEqual(counts.rows("", undefined, Infinity), [
    { source: "a", stream: "s", frontier_event_id: idAt(7), event_count: 5 },
    { source: "a", stream: "t", frontier_event_id: idAt(7), event_count: 1 },
  ]);
});

test("StreamCounts takes less than 10 MiB for 100,000 streams", () => {
  const counts = new StreamCounts();
  for (let place = 0; place < 100_000; place++) {
    counts.add(`source-${place % 100}`, `stream-${place}`, 1, idAt(place));
  }
  assert.equal(counts.rows(streamKey("source-99", "stream-99998"), undefined, 3).length, 1);
  assert.ok(counts.sizeBytes < 10 * 1024 * 1024, `${counts.sizeBytes} bytes`);
});
