import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { ReadableSegment } from "../../../src/log/segment/listed_segment.ts";
import { KeyRows } from "../../../src/log/segment/key_rows.ts";
import { RowGroupParts } from "../../../src/log/segment/row_group_parts.ts";
import { findRows } from "../../../src/log/segment/segment_lookup.ts";
import { openSegment, type Segment } from "../../../src/log/segment/segment_reader.ts";
import {
  LOOKUP_ROWS_MAX,
  type RowGroupCaches,
  SegmentView,
} from "../../../src/log/segment/segment_view.ts";
import { type EventFilter, lineMatcher } from "../../../src/log/line/stored_line.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { hostileBatch, sealCommits, smallBatches, splitLines } from "../../support/test_segment.ts";

/** Hostile events in pages of their own, and plain ones whose columns have a few pages. */
async function mixedSegment(random: SeededRandom) {
  const hostile = Array.from(
    { length: 300 },
    (_, n) => hostileBatch(random, n, 1 + random.below(9)),
  );
  return await sealCommits([hostile, smallBatches(7000)]);
}

function randomFilter(random: SeededRandom, line: Buffer): EventFilter {
  const event: CommittedEvent = JSON.parse(line.toString());
  return {
    ...(random.chance(0.3) && { source: event.source }),
    ...(random.chance(0.3) && { stream: event.stream }),
    ...(random.chance(0.6) && { recordKey: event.record_key }),
    ...(random.chance(0.3) && { kind: random.chance(0.9) ? event.kind : "none" }),
  };
}

function matching(lines: readonly Buffer[], filter: EventFilter): number[] {
  const matches = lineMatcher(filter);
  return [...lines.keys()].filter((row) => matches === null || matches(lines[row]!, 0));
}

test(`findRows() finds the rows whose lines match, by their columns (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const { storage } = await mixedSegment(random);
  const segment = await openSegment(storage, "0.parquet");
  const keyRows = new KeyRows();
  let strangers = 0;
  for (let number = 0; number < segment.rowGroups.length; number++) {
    const lines = splitLines(await segment.readRowGroup(number));
    for (let run = 0; run < 60; run++) {
      const filter = randomFilter(random, random.pick(lines));
      const isEmpty = Object.keys(filter).length === 0;
      const expected = isEmpty ? null : matching(lines, filter);
      const rows = await findRows(segment, number, filter, keyRows);
      if (filter.recordKey === undefined) {
        assert.deepEqual(rows, expected, JSON.stringify(filter));
      } else {
        const matches = lineMatcher(filter)!;
        const found = rows!.filter((row) => matches(lines[row]!, 0));
        assert.deepEqual(found, expected, JSON.stringify(filter));
        const withKey = matching(lines, { recordKey: filter.recordKey });
        strangers += rows!.length - withKey.length;
      }
    }
  }
  // One other key in 65,536 has the same 16 bits, and is looked at with all rows that have it: of
  // 440,000 rows about 7, now and then 100.
  assert.ok(strangers < 1000, `${strangers} rows of other keys`);
});

test(`Segment.readRowGroup() gives the lines of any rows (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const { storage } = await mixedSegment(random);
  const segment = await openSegment(storage, "0.parquet");
  for (let number = 0; number < segment.rowGroups.length; number++) {
    const lines = splitLines(await segment.readRowGroup(number));
    const shares = [0, 0.0005, 0.01, 0.5, 1];
    const selections = shares.map((share) => [...lines.keys()].filter(() => random.chance(share)));
    for (const rows of [[0], [lines.length - 1], ...selections]) {
      const expected = Buffer.concat(rows.map((row) => lines[row]!));
      assert.ok((await segment.readRowGroup(number, rows)).equals(expected), `${rows.length} rows`);
    }
  }
});

/** A segment that stays open. */
function readable(segment: Segment): ReadableSegment {
  const { path, metadata } = segment;
  return {
    path,
    lastEventId: metadata.last_event_id,
    isRuledOut: () => false,
    use: async (read) => await read(segment),
    list: (name) => segment.list(name),
  };
}

async function linesOf(
  segment: Segment,
  caches: RowGroupCaches,
  filter: EventFilter,
  after?: string,
) {
  const source = new SegmentView(readable(segment), caches).lines({
    after,
    filter,
    firstReadBytes: 1,
  });
  const chunks: Buffer[] = [];
  for (let chunk = await source.next(); chunk !== null; chunk = await source.next()) {
    chunks.push(chunk);
  }
  return splitLines(Buffer.concat(chunks)).map(String);
}

test("SegmentView gives the lines after any event, from there to the end", async () => {
  const { storage, lines } = await sealCommits([smallBatches(5000)]);
  const segment = await openSegment(storage, "0.parquet");
  const all = splitLines(lines).map(String);
  const caches = { parts: new RowGroupParts(), keyRows: new KeyRows() };
  assert.deepEqual(await linesOf(segment, caches, {}), all);
  for (const place of [0, 300, 2500, 4095, 4096, 4998, 4999]) {
    const { event_id }: CommittedEvent = JSON.parse(all[place]!);
    const later = await linesOf(segment, caches, {}, event_id);
    assert.ok(later.join("") === all.slice(place + 1).join(""), `after event ${place}`);
  }
});

test("SegmentView reads few events by themselves, and many with their row group", async () => {
  const events = (count: number, recordKey: string) =>
    Array.from({ length: count }, () => ({ recordKey }));
  const { storage, lines } = await sealCommits([[
    preparedBatch("few", { events: events(LOOKUP_ROWS_MAX, "few") }),
    preparedBatch("many", { events: events(LOOKUP_ROWS_MAX + 1, "many") }),
  ]]);
  const segment = await openSegment(storage, "0.parquet");
  const all = splitLines(lines).map(String);
  const caches = { parts: new RowGroupParts(), keyRows: new KeyRows() };
  const few = await linesOf(segment, caches, { recordKey: "few" });
  assert.deepEqual(few, all.slice(0, LOOKUP_ROWS_MAX));
  assert.deepEqual(await linesOf(segment, caches, { recordKey: "many" }), all);
  const { event_id }: CommittedEvent = JSON.parse(all[10]!);
  const later = await linesOf(segment, caches, { recordKey: "few" }, event_id);
  assert.deepEqual(later, all.slice(11, LOOKUP_ROWS_MAX));
});

test("Segment.readRowGroup() reads nothing for no rows", async () => {
  const { storage } = await sealCommits([smallBatches(10)]);
  const segment = await openSegment(storage, "0.parquet");
  await segment.close();
  assert.equal((await segment.readRowGroup(0, [])).length, 0);
});
