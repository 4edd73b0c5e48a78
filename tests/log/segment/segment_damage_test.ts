/**
 * Damaged and hostile segments. Reads terminate in bounded memory, with the original values or a
 * SegmentError. The file hash detects all damage; if the hash is forged too, the chain does.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { HistoryCheck } from "../../../src/log/wal/history_check.ts";
import { IndexError } from "../../../src/log/index/index_format.ts";
import { batchHash } from "../../../src/log/index/key_hash.ts";
import { SegmentError } from "../../../src/log/storage/errors.ts";
import { findBatch, openSegment } from "../../../src/log/segment/segment_reader.ts";
import { COLUMN_NAMES, columnNumber } from "../../../src/log/segment/segment_schema.ts";
import type { ExpectedSegment } from "../../../src/log/segment/segment_metadata.ts";
import { verifySegment } from "../../../src/log/verify/segment_verifier.ts";
import { VerifyFailure } from "../../../src/log/storage/errors.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";
import { flipBit, truncateAt } from "../../support/corrupt.ts";
import { fileFacts } from "../../support/forged_segment.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { readEntries } from "../../support/stream_entries.ts";
import {
  hostileBatch,
  readRowGroup,
  sealCommits,
  smallBatches,
  splitLines,
  type WrittenSegments,
} from "../../support/test_segment.ts";

const FLIPS = 500;

function stored(bytes: Uint8Array): SimulatedDisk {
  return new SimulatedDisk(new Map([["0.parquet", bytes]]));
}

/** Everything that can be read from a segment, as one string. */
async function readEverything(storage: SimulatedDisk, sealed: WrittenSegments): Promise<string> {
  const segment = await openSegment(storage, "0.parquet");
  try {
    const { metadata } = await segment.footer();
    const rowGroups = await segment.rowGroups();
    const answers: string[] = [JSON.stringify(metadata)];
    const lines: Buffer[] = [];
    for (const number of rowGroups.keys()) {
      const group = await readRowGroup(segment, number);
      lines.push(group);
      for (const line of splitLines(group).slice(0, 20)) {
        const { source, stream, record_key: recordKey, kind } = JSON.parse(line.toString());
        for (const filter of [{ recordKey }, { source, stream, kind }]) {
          const left = await segment.prune({ after: undefined, filter });
          answers.push(String(left.includes(number)));
        }
        answers.push(String(await segment.readLines(number, recordKey)));
      }
    }
    for (const { source, batch_id } of sealed.entries.slice(-20)) {
      answers.push(JSON.stringify(await findBatch(segment, source, batch_id)));
      await segment.index.loadFilter(await segment.index.open());
      assert.ok(segment.index.mayHold(batchHash(source, batch_id)));
    }
    answers.push(JSON.stringify(await readEntries(segment.index)));
    return answers.join("\n") + Buffer.concat(lines).toString("latin1");
  } finally {
    await segment.close();
  }
}

async function attempt(act: () => Promise<unknown>): Promise<unknown> {
  try {
    return await act();
  } catch (error) {
    // Any other error is a bug, such as a crash of the decoder.
    const isTold = error instanceof SegmentError || error instanceof VerifyFailure ||
      error instanceof IndexError || error instanceof SyntaxError;
    assert.ok(isTold, String((error as Error).stack));
    return error;
  }
}

function verify(storage: SimulatedDisk, entry: ExpectedSegment): Promise<void> {
  return verifySegment(storage, entry, new HistoryCheck({ chain: true }));
}

/** A small segment with one row group and every encoding. */
function smallSegment(): Promise<WrittenSegments> {
  const random = new SeededRandom();
  const hostile = Array.from(
    { length: 30 },
    (_, n) => hostileBatch(random, n, 1 + random.below(5)),
  );
  return sealCommits([hostile, smallBatches(30)]);
}

test(`every bit flip in a segment is detected or harmless (seed ${SEED})`, async (t) => {
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
    // An attacker who can change the file can change the manifest, too.
    const repaired = { ...entry, ...fileFacts(storage) };
    const failure = await attempt(() => verify(storage, repaired));
    const read = await attempt(() => readEverything(storage, sealed));
    assert.ok(read instanceof Error || read === right, `bit ${bit} changes what is read`);
    if (failure === undefined) {
      assert.equal(read, right, `bit ${bit} makes the segment unreadable, but it verifies`);
      harmless += 1;
    }
  }
  t.diagnostic(`${harmless} of ${FLIPS} flips are harmless`);
});

test(`Segment.useRowGroup() reports the chunk with a flipped bit (seed ${SEED})`, async () => {
  const { storage } = await sealCommits([smallBatches(100)]);
  const bytes = storage.contents("0.parquet");
  const [rowGroup] = await (await openSegment(storage, "0.parquet")).rowGroups();
  const random = new SeededRandom();
  for (const name of COLUMN_NAMES) {
    const { start, end } = rowGroup!.columns[columnNumber(name)]!;
    const bit = 8 * start + random.below(8 * (end - start));
    const segment = await openSegment(stored(flipBit(bytes, bit)), "0.parquet");
    await assert.rejects(readRowGroup(segment, 0), (error) => {
      assert.ok(error instanceof SegmentError);
      assert.match(
        error.message,
        /^0\.parquet: \w+ in bytes \[\d+, \d+\): has CRC-32 \d+, expected \d+$/,
      );
      assert.ok(error.message.includes(` ${name} in bytes [${start}, ${end})`), error.message);
      return true;
    });
  }
});

test(`a segment truncated at any byte is rejected (seed ${SEED})`, async () => {
  const sealed = await smallSegment();
  const bytes = sealed.storage.contents("0.parquet");
  const random = new SeededRandom();
  for (let run = 0; run < 200; run++) {
    const storage = stored(truncateAt(bytes, random.below(bytes.length)));
    assert.ok(await attempt(() => openSegment(storage, "0.parquet")) instanceof SegmentError);
    assert.equal(storage.openFiles, 0);
  }
});

test(`a segment with many changed bytes never hangs its reader (seed ${SEED})`, async () => {
  const sealed = await smallSegment();
  const bytes = sealed.storage.contents("0.parquet");
  const random = new SeededRandom();
  for (let run = 0; run < 300; run++) {
    const copy = Buffer.from(bytes);
    // Damage to the footer is detected early, so each round damages one part of the file.
    const start = random.below(copy.length);
    const end = Math.min(copy.length, start + random.pick([16, 256, 4096]));
    for (let count = 1 + random.below(6); count > 0; count--) {
      const byte = random.pick([0, 0x7f, 0x80, 0xff, random.below(256)]);
      copy[start + random.below(end - start)] = byte;
    }
    await attempt(() => readEverything(stored(copy), sealed));
  }
});

test("a file that is not a segment is rejected", async () => {
  const magic = Buffer.from("PAR1");
  const ending = (length: number) => {
    const bytes = Buffer.from("....PAR1");
    bytes.writeUInt32LE(length);
    return bytes;
  };
  const contents = [
    [],
    [magic],
    [magic, magic],
    ...[0, 5, 0xffff_ffff].map((length) => [magic, ending(length)]),
    [Buffer.alloc(1_000_000)],
    ...[0, 0x19].map((byte) => [magic, Buffer.alloc(1_000_000, byte), magic, ending(1_000_000)]),
  ];
  for (const parts of contents) {
    const bytes = Buffer.concat(parts);
    const opened = await attempt(() => openSegment(stored(bytes), "0.parquet"));
    assert.ok(opened instanceof SegmentError, `${bytes.length} bytes`);
    assert.match(opened.message, /^0\.parquet: /);
  }
});
