import assert from "node:assert/strict";
import { test } from "node:test";
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
