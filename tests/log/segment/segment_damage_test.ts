/**
 * Damaged and hostile segments: reading one ends, in bounded memory, in the right values or in a
 * SegmentError; and no damage gets past the hash of the file or, where that was made to fit, past
 * the chain.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { HistoryCheck } from "../../../src/log/verify/history_check.ts";
import { batchKeyHash } from "../../../src/log/segment/key_filter.ts";
import { seekEntry } from "../../../src/log/segment/segment_list.ts";
import { countThrough } from "../../../src/log/segment/segment_streams.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { KeyRows } from "../../../src/log/segment/key_rows.ts";
import { findRows } from "../../../src/log/segment/segment_lookup.ts";
import { RowGroupCursor } from "../../../src/log/segment/row_group_cursor.ts";
import { LineMemory } from "../../../src/log/segment/segment_lines.ts";
import { ROW_GROUP_EVENTS_MAX } from "../../../src/limits.ts";
import { METADATA_KEY } from "../../../src/log/segment/segment_metadata.ts";
import { openSegment, type Segment } from "../../../src/log/segment/segment_reader.ts";
import { type SegmentEntry, verifySegment } from "../../../src/log/verify/segment_verify.ts";
import { VerifyFailure } from "../../../src/log/verify/verify_failure.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";
import { fileFacts } from "../../support/forged_segment.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  hostileBatch,
  sealCommits,
  smallBatches,
  splitLines,
  type WrittenSegments,
} from "../../support/test_segment.ts";

const FLIPS = 500;

function stored(bytes: Uint8Array): SimulatedDisk {
  return new SimulatedDisk(new Map([["0.parquet", bytes]]));
}

/** All that a reader can ask of a segment, as one text. */
async function readEverything(storage: SimulatedDisk, sealed: WrittenSegments): Promise<string> {
  const segment = await openSegment(storage, "0.parquet");
  try {
    const answers: string[] = [JSON.stringify(segment.metadata)];
    const lines: Buffer[] = [];
    const keyRows = new KeyRows();
    for (let number = 0; number < segment.rowGroups.length; number++) {
      const group = await segment.readRowGroup(number);
      lines.push(group);
      answers.push(String((await readSteps(segment, number)).equals(group)));
      for (const line of splitLines(group).slice(0, 20)) {
        const { source, stream, record_key: recordKey, kind } = JSON.parse(line.toString());
        for (const filter of [{ recordKey }, { source, stream, kind }]) {
          const rows = await findRows(segment, number, filter, keyRows) ?? [];
          answers.push((await segment.readRowGroup(number, rows.slice(0, 3))).toString("latin1"));
          answers.push(String((await segment.candidates(filter)).includes(number)));
        }
      }
    }
    for (const { source, batch_id } of sealed.entries.slice(-20)) {
      answers.push(JSON.stringify(await segment.findBatch(source, batch_id)));
      answers.push(String(await segment.mayHoldKey(batchKeyHash(source, batch_id))));
    }
    for (const name of ["streams", "sources"] as const) {
      const cursor = await seekEntry(segment.list(name), "");
      for (; cursor.current !== null; await cursor.next()) {
        answers.push(JSON.stringify(cursor.current));
      }
    }
    const { last_event_id } = sealed.entries.at(-2)!;
    answers.push(
      JSON.stringify((await countThrough(segment, last_event_id))?.rows("", undefined, Infinity)),
    );
    return answers.join("\n") + Buffer.concat(lines).toString("latin1");
  } finally {
    await segment.close();
  }
}

/** The lines of a row group, a few rows at a time. */
async function readSteps(segment: Segment, number: number): Promise<Buffer> {
  const cursor = new RowGroupCursor();
  await segment.openRowGroup(number, cursor);
  const memory = new LineMemory(0);
  const { rows } = segment.rowGroups[number]!;
  for (let row = 0; row < rows; row += 7) {
    segment.putLines(cursor, memory, row, Math.min(row + 7, rows));
  }
  return memory.lines;
}

async function attempt(act: () => Promise<unknown>): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    // Anything else would be a defect: a crash of the library, or JSON that is none.
    const isTold = error instanceof SegmentError || error instanceof VerifyFailure ||
      error instanceof SyntaxError;
    assert.ok(isTold, String((error as Error).stack));
    return error;
  }
}

function verify(storage: SimulatedDisk, entry: SegmentEntry): Promise<void> {
  return verifySegment(storage, entry, new HistoryCheck({ chain: true }));
}

/** A small segment of one row group, with every encoding. */
function smallSegment(): Promise<WrittenSegments> {
  const random = new SeededRandom();
  const hostile = Array.from(
    { length: 30 },
    (_, n) => hostileBatch(random, n, 1 + random.below(5)),
  );
  return sealCommits([hostile, smallBatches(30)]);
}

test(`every bit flip in a segment is found, or harmless (seed ${SEED})`, async (t) => {
  const sealed = await smallSegment();
  const entry = sealed.segments[0]!;
  const right = await readEverything(sealed.storage, sealed);
  const bytes = sealed.storage.contents("0.parquet");
  const random = new SeededRandom();
  let harmless = 0;
  for (let run = 0; run < FLIPS; run++) {
    const bit = random.below(bytes.length * 8);
    const storage = stored(flipBit(bytes, bit));
    const found = await attempt(() => verify(storage, entry));
    assert.equal((found as VerifyFailure).code, "file_hash_mismatch");
    // Someone who changes the file can change the manifest too.
    const repaired = { ...entry, ...fileFacts(storage) };
    const failure = await attempt(() => verify(storage, repaired));
    const read = await attempt(() => readEverything(storage, sealed));
    if (failure === undefined) {
      assert.ok(read === right, `bit ${bit} is not found, but changes what is read`);
      harmless += 1;
    }
  }
  t.diagnostic(`${harmless} of ${FLIPS} flips are harmless`);
});

test(`no bit flip in the places of row groups hides a batch (seed ${SEED})`, async () => {
  // Their filters over batch ids are so large that they are asked in the file.
  const { storage, entries } = await sealCommits([smallBatches(ROW_GROUP_EVENTS_MAX + 100)]);
  const bytes = storage.contents("0.parquet");
  const { key_filter } = (await openSegment(storage, "0.parquet")).metadata;
  const placesStart = key_filter.offset + key_filter.bytes;
  const placesEnd = bytes.indexOf(METADATA_KEY, placesStart);
  const random = new SeededRandom();
  for (let run = 0; run < FLIPS; run++) {
    const bit = placesStart * 8 + random.below((placesEnd - placesStart) * 8);
    const { source, batch_id } = random.pick(entries);
    const found = await attempt(async () => {
      const segment = await openSegment(stored(flipBit(bytes, bit)), "0.parquet");
      return await segment.findBatch(source, batch_id);
    });
    assert.notEqual(found, null, `bit ${bit} hides ${batch_id}`);
  }
});

test(`a segment cut off anywhere is refused (seed ${SEED})`, async () => {
  const sealed = await smallSegment();
  const bytes = sealed.storage.contents("0.parquet");
  const random = new SeededRandom();
  for (let run = 0; run < 200; run++) {
    const storage = stored(truncateAt(bytes, random.below(bytes.length)));
    assert.ok(await attempt(() => openSegment(storage, "0.parquet")) instanceof SegmentError);
    assert.equal(storage.openFiles, 0);
  }
});

test(`a segment with many bytes changed never stops the reader (seed ${SEED})`, async () => {
  const sealed = await smallSegment();
  const bytes = sealed.storage.contents("0.parquet");
  const random = new SeededRandom();
  for (let run = 0; run < 300; run++) {
    const copy = Buffer.from(bytes);
    // Most damage to the end is found at once, so it goes to one part at a time.
    const start = random.below(copy.length);
    const end = Math.min(copy.length, start + random.pick([16, 256, 4096]));
    for (let count = 1 + random.below(6); count > 0; count--) {
      copy[start + random.below(end - start)] = random.pick([
        0,
        0x7f,
        0x80,
        0xff,
        random.below(256),
      ]);
    }
    await attempt(() => readEverything(stored(copy), sealed));
  }
});

test("a file of any other content is refused", async () => {
  const tail = (length: number) => {
    const bytes = Buffer.from("PAR1....PAR1");
    bytes.writeUInt32LE(length, 4);
    return bytes;
  };
  const files = [
    Buffer.alloc(0),
    Buffer.from("PAR1"),
    Buffer.from("PAR1PAR1"),
    tail(0),
    tail(5),
    tail(0xffff_ffff),
    Buffer.alloc(1_000_000),
    Buffer.concat([Buffer.from("PAR1"), Buffer.alloc(1_000_000), tail(1_000_000)]),
    Buffer.concat([Buffer.from("PAR1"), Buffer.alloc(1_000_000, 0x19), tail(1_000_000)]),
  ];
  for (const bytes of files) {
    const opened = await attempt(() => openSegment(stored(bytes), "0.parquet"));
    assert.ok(opened instanceof SegmentError, `${bytes.length} bytes`);
    assert.match(opened.message, /^0\.parquet: /);
  }
});
