import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import type { PreparedBatch } from "../../../src/event/types.ts";
import { SealedHistory } from "../../../src/log/segment/sealed_history.ts";
import { openSegment } from "../../../src/log/segment/segment_reader.ts";
import { flipBit } from "../../support/corrupt.ts";
import { preparedBatch } from "../../support/prepared.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  entryOf,
  historyOf,
  sealCommits,
  splitLines,
  type WrittenSegments,
} from "../../support/test_segment.ts";

/** Segment limits that every commit reaches, so that each commit ends a segment. */
const EACH_COMMIT = { events: 1, bytes: Infinity };

function batch(source: string, id: string, ...streams: string[]): PreparedBatch {
  return preparedBatch(id, { source, events: streams.map((stream) => ({ stream })) });
}

/** A log with four segments. */
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

test("SealedHistory returns the last events of sources and streams, even from segments added later", async () => {
  const { history, add, segments, lines } = await openHistory(0);
  const events = splitLines(lines).map((line): CommittedEvent => JSON.parse(line.toString()));
  for (const [number, { last_event_id }] of segments.entries()) {
    add(number);
    const sealed = events.filter(({ event_id }) => event_id <= last_event_id);
    for (const source of ["a", "b", "c", "d"]) {
      const ofSource = sealed.filter((event) => event.source === source);
      const last = ofSource.at(-1)?.event_id ?? null;
      assert.equal(await history.sourceFrontier(source), last);
      for (const stream of ["s", "t", "u"]) {
        const last = ofSource.findLast((event) => event.stream === stream)?.event_id ?? null;
        assert.equal(await history.streamFrontier(source, stream), last);
      }
    }
  }
  await history.close();
});

test("SealedHistory.open() checks every file, and the footer of the last one", async () => {
  const { storage, segments } = await openHistory();
  const listed = segments.map(entryOf);
  const size = (number: number) => listed[number]!.bytes;
  const cut = (number: number) =>
    [number, storage.contents(`${number}.parquet`).subarray(1)] as const;
  const cases: [files: (readonly [number, Uint8Array | null])[], message: RegExp | null][] = [
    [[], null],
    [[[0, null]], /^0\.parquet: listed in the manifest, but missing$/],
    [[cut(3)], /^3\.parquet: has \d+ bytes, but the manifest says \d+$/],
    [[cut(2), [1, null]], /^1\.parquet: listed in the manifest, but missing$/],
    [[[1, Buffer.alloc(size(1))]], null],
    [[[3, Buffer.alloc(size(3))]], /^3\.parquet: no Parquet magic at byte 0$/],
  ];
  for (const [files, message] of cases) {
    const tree = new Map(storage.tree());
    for (const [number, bytes] of files) {
      if (bytes === null) tree.delete(`${number}.parquet`);
      else tree.set(`${number}.parquet`, bytes);
    }
    const disk = new SimulatedDisk(tree);
    const history = new SealedHistory(disk);
    const opening = history.open(listed);
    if (message === null) await opening;
    else await assert.rejects(opening, { name: /^(CorruptLog|Segment)Error$/, message });
    await history.close();
    assert.equal(disk.openFiles, 0);
  }
  const history = new SealedHistory(storage);
  const other = { ...listed[3]!, batches: 2 };
  await assert.rejects(history.open([...listed.slice(0, 3), other]), /batches: 1 in the footer/);
  await history.close();
});

test("SealedHistory caches filters up to its limit, and reads a page of the other tables", async () => {
  const { storage, segments, entries } = await openHistory();
  const { filterBytes } = await (await openSegment(storage, "0.parquet")).index.open();
  for (const fitting of [0, 2, 4]) {
    const history = historyOf(storage, segments, { filtersBytesMax: fitting * filterBytes });
    const newBatch = () => history.findBatch("a", "new");
    assert.deepEqual(await Promise.all([newBatch(), newBatch()]), [null, null]);
    const before = storage.operations.length;
    assert.equal(await newBatch(), null);
    assert.equal(storage.operations.length - before, 4 - fitting);
    for (const entry of entries) {
      assert.deepEqual(await history.findBatch(entry.source, entry.batch_id), entry);
    }
    await history.close();
  }
});

test("SealedHistory serves nothing from a damaged segment and reports the position of the damage", async () => {
  const { storage, segments, entries } = await openHistory();
  const { index } = await (await openSegment(storage, "0.parquet")).footer();
  const footerEnd = storage.contents("0.parquet").length - 8;
  const cases: [place: number, message: RegExp][] = [
    [index.start + 9, /^0\.parquet: the block of streams at byte 0: does not match its CRC-32$/],
    [footerEnd - 9, /^0\.parquet: the footer at byte \d+ does not match its CRC-32$/],
  ];
  for (const [place, message] of cases) {
    const disk = damagedAt(storage, place);
    const history = historyOf(disk, segments);
    const last = entries.at(-1)!;
    for (let time = 0; time < 2; time++) {
      const frontier = history.streamFrontier("a", "s");
      await assert.rejects(frontier!, { name: /^(Index|Segment)Error$/, message });
      // Queries that do not need the damaged segment still succeed.
      assert.deepEqual(await history.findBatch(last.source, last.batch_id), last);
      assert.equal(await history.streamFrontier("b", "s"), last.last_event_id);
    }
    await history.close();
    assert.equal(disk.openFiles, 0);
  }
});

test("SealedHistory finds batches despite a damaged index, and reports the damage once", async () => {
  const { storage, segments, entries } = await openHistory();
  const segment = await openSegment(storage, "0.parquet");
  const { index: { start, end } } = await segment.footer();
  const { identitiesStart, filterStart } = await segment.index.open();
  for (const place of [start + identitiesStart + 9, start + filterStart + 9, end - 9]) {
    const damaged = damagedAt(storage, place);
    for (const filtersBytesMax of [0, Infinity]) {
      const reports: string[] = [];
      const report = (line: string) => void reports.push(line);
      const history = historyOf(damaged, segments, { filtersBytesMax, report });
      for (const entry of entries) {
        assert.deepEqual(await history.findBatch(entry.source, entry.batch_id), entry);
      }
      assert.equal(await history.findBatch("a", "new"), null);
      const isRead = place !== start + filterStart + 9 || filtersBytesMax > 0;
      assert.equal(reports.length, isRead ? 1 : 0, JSON.stringify(reports));
      if (isRead) {
        assert.match(reports[0]!, /^0\.parquet: .*CRC-32; lookups read the rows instead$/);
      }
      await history.close();
    }
  }
});

/** A copy of a disk with a bit in byte `place` of `0.parquet` flipped. */
function damagedAt(storage: SimulatedDisk, place: number): SimulatedDisk {
  const bytes = flipBit(storage.contents("0.parquet"), 8 * place);
  return new SimulatedDisk(new Map(storage.tree()).set("0.parquet", bytes));
}
