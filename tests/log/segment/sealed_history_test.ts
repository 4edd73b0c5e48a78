import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { PreparedBatch } from "../../../src/event/types.ts";
import { batchKeyHash, KEY_PAGE_BYTES } from "../../../src/log/segment/key_filter.ts";
import { CorruptLogError } from "../../../src/log/storage/errors.ts";
import type { SegmentEntry } from "../../../src/log/segment/manifest.ts";
import { KeyFilters, SealedHistory } from "../../../src/log/segment/sealed_history.ts";
import { TableCache } from "../../../src/log/segment/table_cache.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { flipBit } from "../../support/corrupt.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  entryOf,
  sealCommits,
  sealedSegments,
  smallBatches,
  type WrittenSegments,
} from "../../support/test_segment.ts";

/** Ends a segment with every commit. */
const EACH_COMMIT = { events: 1, bytes: Infinity };

function batch(source: string, id: string, ...streams: string[]): PreparedBatch {
  return preparedBatch(id, { source, events: streams.map((stream) => ({ stream })) });
}

/** Four segments. */
const SEALED: Promise<WrittenSegments> = sealCommits([
  [batch("a", "1", "s", "t"), batch("b", "1", "s")],
  [batch("a", "2", "t")],
  [batch("c", "1", "s"), batch("c", "2", "u")],
  [batch("b", "2", "s")],
], EACH_COMMIT);

async function openHistory(segments = 4) {
  const sealed = await SEALED;
  const storage = new SimulatedDisk(sealed.storage.tree());
  const history = new SealedHistory(storage);
  const add = (number: number) => history.add([entryOf(sealed.segments[number]!)]);
  for (let number = 0; number < segments; number++) add(number);
  return { ...sealed, storage, history, add };
}

test("SealedHistory opens no segment before it is asked", async () => {
  const { storage, history, entries } = await openHistory();
  assert.equal(history.files.length, 4);
  assert.equal(history.lastEventId, entries.at(-1)!.last_event_id);
  assert.equal(storage.operations.length, 0);
  await history.close();
});

test("SealedHistory.findBatch() finds a batch of any segment, and none that is not there", async () => {
  const { storage, history, entries } = await openHistory();
  for (const entry of entries) {
    assert.deepEqual(await history.findBatch(entry.source, entry.batch_id), entry);
  }
  const before = storage.operations.length;
  for (let n = 3; n < 300; n++) assert.equal(await history.findBatch("a", `${n}`), null);
  assert.ok(storage.operations.length - before < 20, "the filters are in memory");
  assert.equal(await history.findBatch("d", "1"), null);
  await history.close();
  assert.equal(storage.openFiles, 0);
});

test("SealedHistory tells last events of sources and streams, of segments added later too", async () => {
  const { history, add, segments, entries } = await openHistory(0);
  const seen = async () => [
    await history.sourceFrontier("a"),
    await history.sourceFrontier("b"),
    await history.streamFrontier("a", "s"),
    await history.streamFrontier("a", "t"),
    await history.streamFrontier("b", "s"),
    await history.streamFrontier("c", "s"),
  ];
  const [a1, b1, a2, c1, , b2] = entries;
  assert.deepEqual(await seen(), [null, null, null, null, null, null]);
  const expected = [
    [a1!.last_event_id, b1!.last_event_id, a1!.first_event_id, a1!.last_event_id],
    [a2!.last_event_id, b1!.last_event_id, a1!.first_event_id, a2!.last_event_id],
    [a2!.last_event_id, b1!.last_event_id, a1!.first_event_id, a2!.last_event_id],
    [a2!.last_event_id, b2!.last_event_id, a1!.first_event_id, a2!.last_event_id],
  ];
  for (const number of segments.keys()) {
    add(number);
    const b = number === 3 ? b2!.last_event_id : b1!.last_event_id;
    const c = number < 2 ? null : c1!.last_event_id;
    assert.deepEqual(await seen(), [...expected[number]!, b, c], `with ${number + 1} segments`);
    assert.deepEqual(await seen(), [...expected[number]!, b, c], "and again");
  }
  await history.close();
});

test("SealedHistory answers known questions without reading", async () => {
  const { storage, history } = await openHistory();
  const ask = async () => {
    await history.streamFrontier("a", "s");
    await history.streamFrontier("none", "s");
    await history.sourceFrontier("b");
    await history.sourceFrontier("none");
  };
  await ask();
  const before = storage.operations.length;
  await ask();
  assert.equal(storage.operations.length, before);
  await history.close();
});

test("SealedHistory tells of a damaged footer each time, and of the others still", async () => {
  const { storage, segments, entries } = await openHistory();
  const tree = storage.tree();
  const bytes = Buffer.from(tree.get(segments[1]!.path)!);
  bytes[bytes.length - 5]! ^= 0xff;
  const damaged = new SimulatedDisk(tree.set(segments[1]!.path, bytes));
  const history = new SealedHistory(damaged);
  history.add(segments.map(entryOf));
  const newest = entries.at(-1)!;
  for (let time = 0; time < 2; time++) {
    assert.deepEqual(await history.findBatch(newest.source, newest.batch_id), newest);
    await assert.rejects(history.findBatch("a", "1"), CorruptLogError);
    await assert.rejects(history.sourceFrontier("a"), CorruptLogError);
  }
  await history.close();
  assert.equal(damaged.openFiles, 0);
});

test("TableCache keeps no more segments open than its bound, and those that are read", async () => {
  const { storage, segments } = await openHistory();
  const tables = new TableCache(storage, 2);
  const entries = segments.map(entryOf);
  const read = (entry: SegmentEntry) => tables.use(entry, ({ path }) => path);
  for (const entry of [...entries, ...entries]) {
    assert.equal(await read(entry), entry.path);
    assert.ok(storage.openFiles <= 2);
  }
  // Each waits for the one inside.
  const nest = (rest: SegmentEntry[]): Promise<void> => {
    const [entry, ...inner] = rest;
    if (entry === undefined) return Promise.resolve();
    return tables.use(entry, async (segment) => {
      await nest(inner);
      await segment.readRowGroup(0);
    });
  };
  await nest(entries);
  await Promise.all(entries.map((_, n) => nest([...entries.slice(n), ...entries.slice(0, n)])));
  assert.ok(storage.openFiles <= 2);
  await tables.close();
  assert.equal(storage.openFiles, 0);
});

test("TableCache opens a segment again after it could not be opened", async () => {
  const { storage, segments } = await openHistory();
  const tables = new TableCache(storage);
  let failures = 2;
  storage.hook = ({ kind }) => kind === "open" && failures-- > 0 ? { errno: "EMFILE" } : null;
  const read = () => tables.use(entryOf(segments[0]!), ({ metadata }) => metadata.events);
  await assert.rejects(read(), /EMFILE/);
  await assert.rejects(read(), /EMFILE/);
  assert.equal(await read(), 3);
  await tables.close();
});

test("KeyFilters holds as many filters as fit, and reads a page of the file for others", async () => {
  const { storage, segments, entries } = await openHistory();
  const { segments: listed, tables } = sealedSegments(storage, segments);
  const hash = batchKeyHash(entries[0]!.source, entries[0]!.batch_id);
  for (const fitting of [0, 2, 4]) {
    const filters = new KeyFilters(listed, fitting * KEY_PAGE_BYTES);
    const atOnce = [0, 1, 2, 3, 0].map((n) => filters.newest(hash, n, n + 1));
    assert.deepEqual(await Promise.all(atOnce), [0, -1, -1, -1, 0]);
    assert.equal(filters.sizeBytes, fitting * KEY_PAGE_BYTES);
    let reads = 0;
    storage.hook = ({ kind }) => {
      reads += kind === "read" ? 1 : 0;
      return null;
    };
    assert.equal(await filters.newest(hash, 0, 4), 0);
    assert.equal(await filters.newest(hash, 1, 4), -1);
    assert.equal(reads === 0, fitting === 4);
    const numbers = [];
    for (const { source, batch_id } of entries) {
      numbers.push(await filters.newest(batchKeyHash(source, batch_id), 0, 4));
    }
    assert.deepEqual(numbers, [0, 0, 1, 2, 2, 3]);
    storage.hook = () => null;
  }
  await tables.close();
});

test("SealedHistory serves nothing of a stream index or key filter that is damaged, and names the place", async () => {
  const { storage, segments, entries } = await openHistory();
  const { metadata } = await openSegment(storage, "0.parquet");
  const { key_filter, stream_index } = metadata;
  const indexStart = stream_index.bytes - stream_index.index_bytes;
  for (
    const [place, message] of [
      [key_filter.offset + 9, /^0\.parquet: the key filter from byte \d+: .* CRC-32$/],
      [stream_index.offset + 9, /^0\.parquet: a block of the stream index, .* CRC-32$/],
      [
        stream_index.offset + indexStart + 9,
        /^0\.parquet: a block of the stream index, .* CRC-32$/,
      ],
    ] as const
  ) {
    const bytes = Buffer.from(storage.contents("0.parquet"));
    const damaged = new SimulatedDisk(
      new Map(storage.tree()).set("0.parquet", flipBit(bytes, 8 * place)),
    );
    const history = new SealedHistory(damaged);
    history.add(segments.map(entryOf));
    await assert.rejects(history.streamFrontier("a", "s"), { name: "SegmentError", message });
    // What does not need the damaged segment is answered.
    const last = entries.at(-1)!;
    assert.deepEqual(await history.findBatch(last.source, last.batch_id), last);
    assert.equal(await history.streamFrontier("b", "s"), last.last_event_id);
    await history.close();
  }
});

test("SealedHistory refuses only the batches of the page of a key filter that is damaged", async () => {
  const { storage, segments } = await sealCommits([smallBatches(5000)]);
  const { metadata } = await openSegment(storage, "0.parquet");
  const bytes = storage.contents("0.parquet");
  const damaged = flipBit(bytes, 8 * (metadata.key_filter.offset + KEY_PAGE_BYTES + 9));
  const history = new SealedHistory(
    new SimulatedDisk(new Map(storage.tree()).set("0.parquet", damaged)),
  );
  history.add(segments.map(entryOf));
  const found = await Promise.allSettled(
    Array.from({ length: 200 }, (_, n) => history.findBatch("shop", `new-${n}`)),
  );
  const refused = found.filter(({ status }) => status === "rejected").length;
  assert.ok(refused > 0 && refused < 100, `${refused} of 200`);
  await history.close();
});
