import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { EntryList } from "../../../src/log/index/entries.ts";
import { IndexError, NO_COVERAGE } from "../../../src/log/index/index_format.ts";
import { IndexBuilder } from "../../../src/log/index/index_writer.ts";
import { mergeIndexes } from "../../../src/log/index/index_merge.ts";
import { batchHash, KEY_HASHES, streamHash, valueHash } from "../../../src/log/index/key_hash.ts";
import { sourceKey } from "../../../src/log/index/stream_blocks.ts";
import { type StreamEntry, streamKey } from "../../../src/log/read/stream_counts.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";
import { idAt } from "../../support/event_ids.ts";
import {
  checkIndex,
  encodeIndex,
  indexIn,
  readEntries,
  rewriteIndex,
} from "../../support/forged_index.ts";

interface Row {
  batch: string;
  source: string;
  stream: string;
  recordKey: string;
  rowGroup: number;
  eventId: string;
}

let nextEvent = 1;

/** Events of batches in row groups of `groupRows`. */
function randomRows(random: SeededRandom, count: number, groupRows: number): Row[] {
  let source = "s0";
  let batch = 0;
  return Array.from({ length: count }, (_, row) => {
    if (row === 0 || random.chance(0.3)) {
      source = `s${random.below(4)}`;
      batch = nextEvent;
    }
    const stream = random.chance(0.02) ? "z".repeat(128) : `t${random.below(count)}`;
    const recordKey = `k${random.below(count)}`;
    const rowGroup = Math.floor(row / groupRows);
    return { batch: `b${batch}`, source, stream, recordKey, rowGroup, eventId: idAt(nextEvent++) };
  });
}

async function buildIndex(rows: Row[]): Promise<Buffer> {
  const builder = new IndexBuilder();
  for (const [place, row] of rows.entries()) {
    const before = rows[place - 1];
    if (before !== undefined && before.rowGroup < row.rowGroup) builder.endRowGroup();
    if (before?.batch !== row.batch) builder.addBatch(row.source, row.batch);
    builder.addEvent(row.source, { ...row, kind: "upserted" }, row.eventId);
  }
  builder.endRowGroup();
  return await builder.finish();
}

/** The streams and sources, as a scan of the rows counts them. */
function streamsOf(rows: Row[]): StreamEntry[] {
  const entries = new Map<string, StreamEntry>();
  for (const { source, stream, eventId } of rows) {
    for (const key of [sourceKey(source), streamKey(source, stream)]) {
      const events = (entries.get(key)?.events ?? 0) + 1;
      entries.set(key, { key, events, lastEventId: eventId });
    }
  }
  return [...entries.values()].sort((a, b) => a.key < b.key ? -1 : 1);
}

function distinct(numbers: number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

test(`an index answers as a scan of the rows (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  for (const count of [1, 2, 510, 511, 512, 3000]) {
    const rows = randomRows(random, count, 1 + random.below(count));
    const index = indexIn(await buildIndex(rows));
    await index.loadFilter(await index.open());
    for (const { batch, source, stream, recordKey } of random.pick([rows, rows.slice(-200)])) {
      const hash = batchHash(source, batch);
      const first = rows.find((row) => row.batch === batch)!;
      assert.deepEqual(await index.find("identities", hash), [first.rowGroup]);
      assert.ok(index.mayHold(hash));
      assert.ok(index.mayHold(streamHash(streamKey(source, stream))));
      const ofKey = rows.filter((row) => row.recordKey === recordKey);
      const groups = distinct(ofKey.map(({ rowGroup }) => rowGroup));
      assert.deepEqual(await index.find("locations", valueHash("record_key", recordKey)), groups);
      const ofStream = rows.filter((row) => row.stream === stream);
      const streamGroups = distinct(ofStream.map(({ rowGroup }) => rowGroup));
      assert.deepEqual(await index.find("locations", valueHash("stream", stream)), streamGroups);
    }
    assert.deepEqual(await index.find("identities", batchHash("s0", "new")), []);
    const streams = streamsOf(rows);
    assert.deepEqual(await readEntries(index), streams);
    for (let time = 0; time < 20; time++) {
      const { key } = random.pick(streams);
      const from = random.pick([key, key + "-", key.slice(0, -1)]);
      const blocks = await Array.fromAsync(index.blocks(from));
      assert.deepEqual(blocks.flat(), streams.filter((entry) => entry.key >= from));
      const expected = streams.find((entry) => entry.key === from) ?? null;
      assert.deepEqual(await index.entry(from), expected);
    }
  }
});

test("an index finds a key whose entries fill many pages, and its neighbors", async () => {
  const list = new EntryList();
  const hash = valueHash("record_key", "hot");
  for (let ordinal = 0; ordinal < 5000; ordinal++) list.add(hash, ordinal);
  for (const near of [hash - 1, hash + 1, hash - 2 ** 16, hash + 2 ** 16, 0, KEY_HASHES - 1]) {
    list.add(near, 7);
    list.add(near, 7);
  }
  const locations = [list.sorted()];
  const bytes = await encodeIndex(
    { coverage: NO_COVERAGE, batches: 0, streams: [], identities: [], locations },
  );
  const index = indexIn(bytes);
  assert.deepEqual(await index.find("locations", hash), Array.from({ length: 5000 }, (_, n) => n));
  for (const near of [hash - 1, hash + 1, hash - 2 ** 16, hash + 2 ** 16, 0, KEY_HASHES - 1]) {
    assert.deepEqual(await index.find("locations", near), [7]);
  }
  assert.deepEqual(await index.find("locations", hash + 2), []);
});

test(`merged indexes answer as all of their segments, in any grouping (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const segments: Row[][] = [];
  for (let n = 0; n < 6; n++) segments.push(randomRows(random, 1 + random.below(1500), 100));
  const built = await Promise.all(segments.map(buildIndex));
  const coverage = "ab".repeat(32);
  const merge = async (parts: Buffer[], ordinals: number[], from: string) => {
    const pieces: Buffer[] = [];
    const inputs = parts.map((bytes, place) => ({
      index: indexIn(bytes, from),
      ordinal: ordinals[place]!,
      isSegment: from === NO_COVERAGE,
    }));
    await mergeIndexes(inputs, coverage, (bytes) => void pieces.push(bytes));
    return Buffer.concat(pieces);
  };
  const whole = await merge(built, [0, 1, 2, 3, 4, 5], NO_COVERAGE);
  const halves = [
    await merge(built.slice(0, 2), [0, 1], NO_COVERAGE),
    await merge(built.slice(2), [0, 1, 2, 3], NO_COVERAGE),
  ];
  assert.ok((await merge(halves, [0, 2], coverage)).equals(whole));
  const index = indexIn(whole, coverage);
  assert.deepEqual(await readEntries(index), streamsOf(segments.flat()));
  for (const [ordinal, rows] of segments.entries()) {
    for (const { batch, source, stream, recordKey } of rows.slice(0, 50)) {
      assert.deepEqual(await index.find("identities", batchHash(source, batch)), [ordinal]);
      const having = (wanted: (row: Row) => boolean) =>
        segments.flatMap((rows, place) => rows.some(wanted) ? [place] : []);
      const ofStream = having((row) => row.stream === stream && row.source === source);
      const streamOf = streamHash(streamKey(source, stream));
      assert.deepEqual(await index.find("identities", streamOf), ofStream);
      const ofKey = having((row) => row.recordKey === recordKey);
      assert.deepEqual(await index.find("locations", valueHash("record_key", recordKey)), ofKey);
    }
  }
  await assert.rejects(async () => await indexIn(whole).open(), /covers other segments/);
});

test(`no flipped bit and no cut of an index changes an answer (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const rows = randomRows(random, 1200, 100);
  const bytes = await buildIndex(rows);
  const { batch, source, stream, recordKey } = random.pick(rows);
  const answers = async (bytes: Buffer) => {
    const index = indexIn(bytes);
    await index.loadFilter(await index.open());
    return JSON.stringify([
      await index.find("identities", batchHash(source, batch)),
      await index.find("locations", valueHash("record_key", recordKey)),
      await index.entry(streamKey(source, stream)),
      index.mayHold(batchHash(source, batch)),
      await readEntries(index),
    ]);
  };
  const right = await answers(bytes);
  let detected = 0;
  for (let run = 0; run < 300; run++) {
    const bit = random.below(8 * bytes.length);
    const changed = run < 250 ? flipBit(bytes, bit) : truncateAt(bytes, bit >>> 3);
    const isRight = await answers(Buffer.from(changed)).then(
      (answer) => answer === right,
      (error) => error instanceof IndexError,
    );
    assert.ok(isRight, `bit ${bit}`);
    await assert.rejects(checkIndex(indexIn(Buffer.from(changed))), IndexError);
    detected += 1;
  }
  assert.equal(detected, 300);
  await checkIndex(indexIn(bytes));
  assert.ok((await rewriteIndex(bytes, {})).equals(bytes));
});
