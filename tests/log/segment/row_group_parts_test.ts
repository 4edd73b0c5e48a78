import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import type { CommittedEvent } from "../../../src/event/verify_event.ts";
import {
  partCount,
  ROW_GROUP_PART_BYTES,
  RowGroupParts,
  rowsOfPart,
} from "../../../src/log/segment/row_group_parts.ts";
import { openSegment, type Segment } from "../../../src/log/segment/segment_reader.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { preparedBatch } from "../../support/prepared.ts";
import type { SimulatedDisk } from "../../support/simulated_disk.ts";
import { hostileBatch, sealCommits, smallBatches, splitLines } from "../../support/test_segment.ts";

function idOf(line: Buffer): string {
  const { event_id }: CommittedEvent = JSON.parse(line.toString());
  return event_id;
}

test("RowGroupParts.read() gives the parts that make up a row group", async () => {
  const { storage } = await sealCommits([smallBatches(6000)]);
  const segment = await openSegment(storage, "0.parquet");
  const parts = new RowGroupParts();
  for (const [number, rowGroup] of segment.rowGroups.entries()) {
    assert.ok(partCount(rowGroup) > 1, "the row group has several parts");
    const lines: Buffer[] = [];
    for (let part = 0; part < partCount(rowGroup); part++) {
      lines.push(await linesOf(parts, segment, number, part));
      assert.ok(lines.at(-1)!.length < 2 * ROW_GROUP_PART_BYTES);
    }
    assert.ok(Buffer.concat(lines).equals(await segment.readRowGroup(number)));
  }
});

function linesOf(parts: RowGroupParts, segment: Segment, number: number, part: number) {
  return parts.read(segment, number, part, (lines) => Buffer.from(lines));
}

test("RowGroupParts.read() decodes a part once", async () => {
  const { storage } = await sealCommits([smallBatches(3000)]);
  const segment = await openSegment(storage, "0.parquet");
  const parts = new RowGroupParts();
  const lines = await linesOf(parts, segment, 0, 1);
  const reads = readsOf(storage);
  // To decode it again, what was read would have to be read again.
  assert.ok((await linesOf(parts, segment, 0, 1)).equals(lines));
  assert.equal(readsOf(storage), reads);
  assert.ok(!(await linesOf(parts, segment, 0, 0)).equals(lines));
});

test("RowGroupParts.read() decodes a part once for readers at the same time", async () => {
  const { storage } = await sealCommits([smallBatches(3000)]);
  const segment = await openSegment(storage, "0.parquet");
  const before = readsOf(storage);
  const lines = await linesOf(new RowGroupParts(), segment, 0, 1);
  const reads = readsOf(storage) - before;
  const parts = new RowGroupParts();
  const read = await Promise.all([0, 0, 0].map(() => linesOf(parts, segment, 0, 1)));
  assert.equal(readsOf(storage) - before, 2 * reads);
  for (const same of read) assert.ok(same.equals(lines));
});

test(`RowGroupParts.read() gives a part whatever was read before it (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const hostile = Array.from({ length: 4000 }, (_, n) => hostileBatch(random, n, 1));
  const alike = preparedBatch("alike", { events: Array.from({ length: 5000 }, () => ({})) });
  const { storage } = await sealCommits([hostile, [alike]]);
  const segment = await openSegment(storage, "0.parquet");
  const parts: [number, number, Buffer][] = [];
  for (const [number, rowGroup] of segment.rowGroups.entries()) {
    const lines = splitLines(await segment.readRowGroup(number));
    const partRows = rowsOfPart(rowGroup);
    for (let part = 0; part < partCount(rowGroup); part++) {
      const expected = lines.slice(part * partRows, (part + 1) * partRows);
      parts.push([number, part, Buffer.concat(expected)]);
    }
  }
  assert.ok(parts.length > 10, `${parts.length} parts`);
  for (let reading = 0; reading < 20; reading++) {
    const fresh = new RowGroupParts();
    // Some parts one after the other, then from another place, two readers at a time.
    for (let step = 0; step < 10; step++) {
      const from = random.below(parts.length);
      const next = parts.slice(from, from + 1 + random.below(4));
      const other = parts[random.below(parts.length)]!;
      for (const wanted of next) {
        const read = await Promise.all(
          [wanted, other].map(([number, part]) => linesOf(fresh, segment, number, part)),
        );
        assert.ok(read[0]!.equals(wanted[2]), `part ${wanted[1]} of row group ${wanted[0]}`);
        assert.ok(read[1]!.equals(other[2]), `part ${other[1]} of row group ${other[0]}`);
      }
    }
  }
});

test("RowGroupParts.read() reads a row group once for a reader that goes on in order", async () => {
  const { storage } = await sealCommits([smallBatches(6000)]);
  const segment = await openSegment(storage, "0.parquet");
  const parts = new RowGroupParts();
  for (const [number, rowGroup] of segment.rowGroups.entries()) {
    await linesOf(parts, segment, number, 0);
    const reads = readsOf(storage);
    for (let part = 1; part < partCount(rowGroup); part++) {
      await linesOf(parts, segment, number, part);
    }
    assert.equal(readsOf(storage), reads, `row group ${number}`);
  }
});

function readsOf({ operations }: SimulatedDisk): number {
  return operations.filter(({ kind }) => kind === "read").length;
}

test(`RowGroupParts.partAfter() is the part of the next event (seed ${SEED})`, async () => {
  const random = new SeededRandom();
  const { storage } = await sealCommits([smallBatches(6000)]);
  const segment = await openSegment(storage, "0.parquet");
  const parts = new RowGroupParts();
  for (const [number, rowGroup] of segment.rowGroups.entries()) {
    const ids = splitLines(await segment.readRowGroup(number)).map(idOf);
    const partRows = rowsOfPart(rowGroup);
    const places = [
      0,
      partRows - 1,
      partRows,
      ...Array.from({ length: 50 }, () => random.below(ids.length)),
    ];
    for (const place of places) {
      const part = await parts.partAfter(segment, number, ids[place]!);
      const partOfEvent = Math.floor(place / partRows);
      assert.equal(part, partOfEvent, `row ${place} of ${ids.length}, ${partRows} in a part`);
    }
    assert.equal(await parts.partAfter(segment, number, "00000000-0000-7000-8000-000000000000"), 0);
  }
});

test("rowsOfPart() is one where an event is larger than a part", async () => {
  const events = Array.from(
    { length: 3 },
    () => ({ payload: "x".repeat(2 * ROW_GROUP_PART_BYTES) }),
  );
  const { storage, lines } = await sealCommits([[preparedBatch("large", { events })]]);
  const segment = await openSegment(storage, "0.parquet");
  assert.equal(rowsOfPart(segment.rowGroups[0]!), 1);
  const part = await linesOf(new RowGroupParts(), segment, 0, 2);
  assert.equal(part.toString(), splitLines(lines)[2]!.toString());
});
