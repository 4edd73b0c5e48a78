import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { ReadableSegment } from "../../../src/log/segment/listed_segment.ts";
import { RowGroupCache } from "../../../src/log/segment/row_group_cache.ts";
import { openSegment, type Segment } from "../../../src/log/segment/segment_reader.ts";
import { ScanMemory } from "../../../src/log/read/scan_memory.ts";
import { SegmentView } from "../../../src/log/segment/segment_view.ts";
import { type EventFilter, lineMatcher } from "../../../src/log/line/stored_line.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { hostileBatch, sealCommits, smallBatches, splitLines } from "../../support/test_segment.ts";

/** A segment that stays open. */
function readable(segment: Segment): ReadableSegment {
  const { path, metadata } = segment;
  return {
    path,
    lastEventId: metadata.last_event_id,
    isPruned: () => false,
    use: async (read) => await read(segment),
    streams: {
      index: () => segment.readStreamIndex(),
      block: (place) => segment.readStreamBlock(place),
    },
  };
}

async function linesOf(
  segment: Segment,
  rowGroups: RowGroupCache,
  filter: EventFilter,
  after?: string,
) {
  const source = new SegmentView(readable(segment), rowGroups).lines({
    after,
    filter,
    firstReadBytes: 1,
    memory: new ScanMemory(),
  });
  const chunks: Buffer[] = [];
  for (let chunk = await source.next(); chunk !== null; chunk = await source.next()) {
    chunks.push(Buffer.from(chunk));
  }
  return splitLines(Buffer.concat(chunks)).map(String);
}

test("SegmentView gives the lines after any event, from there to the end", async () => {
  const { storage, lines } = await sealCommits([smallBatches(5000)]);
  const segment = await openSegment(storage, "0.parquet");
  const all = splitLines(lines).map(String);
  const rowGroups = new RowGroupCache();
  assert.deepEqual(await linesOf(segment, rowGroups, {}), all);
  for (const place of [0, 300, 1023, 1024, 2500, 4095, 4096, 4998, 4999]) {
    const { event_id }: CommittedEvent = JSON.parse(all[place]!);
    const later = await linesOf(segment, rowGroups, {}, event_id);
    assert.ok(later.join("") === all.slice(place + 1).join(""), `after event ${place}`);
  }
});

test("SegmentView reads no more than the row groups that hold a key, and their key column", async () => {
  const { storage, lines } = await sealCommits([smallBatches(5000)]);
  const segment = await openSegment(storage, "0.parquet");
  const all = splitLines(lines).map(String);
  const read: number[] = [];
  const readRowGroup = segment.readRowGroup.bind(segment);
  segment.readRowGroup = (number, memory) => {
    read.push(number);
    return readRowGroup(number, memory);
  };
  const rowGroups = new RowGroupCache();
  const matching = async (recordKey: string) => {
    const matches = lineMatcher({ recordKey })!;
    const found = await linesOf(segment, rowGroups, { recordKey });
    return found.filter((line) => matches(Buffer.from(line), 0));
  };
  assert.deepEqual(await matching("key-2500"), [all[2500]]);
  assert.deepEqual(read, [2]);
  for (let absent = 0; absent < 2000; absent++) {
    assert.deepEqual(await matching(`absent-${absent}`), []);
  }
  assert.deepEqual(read, [2], "some pass a Bloom filter, but none has its row group decoded");
  assert.deepEqual(await matching("key-2501"), [all[2501]]);
  assert.deepEqual(read, [2], "lines that are in memory are not decoded");
});

test(`SegmentView gives every event that passes a filter (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const hostile = Array.from(
    { length: 300 },
    (_, n) => hostileBatch(random, n, 1 + random.below(9)),
  );
  const { storage, lines } = await sealCommits([hostile, smallBatches(3000)]);
  const segment = await openSegment(storage, "0.parquet");
  const rowGroups = new RowGroupCache();
  const all = splitLines(lines);
  for (let run = 0; run < 60; run++) {
    const filter = randomFilter(random, random.pick(all));
    const matches = lineMatcher(filter) ?? (() => true);
    const expected = all.filter((line) => matches(line, 0)).map(String);
    const found = await linesOf(segment, rowGroups, filter);
    const passing = found.filter((line) => matches(Buffer.from(line), 0));
    assert.deepEqual(passing, expected, JSON.stringify(filter));
  }
});

function randomFilter(random: SeededRandom, line: Buffer): EventFilter {
  const event: CommittedEvent = JSON.parse(line.toString());
  return {
    ...(random.chance(0.3) && { source: event.source }),
    ...(random.chance(0.3) && { stream: event.stream }),
    ...(random.chance(0.6) && { recordKey: event.record_key }),
    ...(random.chance(0.3) && { kind: random.chance(0.9) ? event.kind : "none" }),
  };
}

test("SegmentView hands out copies: changing one changes nothing that is read later", async () => {
  const { storage, lines } = await sealCommits([smallBatches(100)]);
  const segment = await openSegment(storage, "0.parquet");
  const view = new SegmentView(readable(segment), new RowGroupCache());
  for (let reading = 0; reading < 2; reading++) {
    const source = view.lines({
      after: undefined,
      filter: {},
      firstReadBytes: 1,
      memory: new ScanMemory(),
    });
    const chunk = await source.next();
    assert.ok(chunk!.equals(lines));
    chunk!.fill(0);
  }
});
