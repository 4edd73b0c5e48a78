import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { type BatchPiece, batchPieces } from "../../src/log/batch_pieces.ts";
import { CorruptLogError } from "../../src/log/log_error.ts";
import { flipBit, repairFraming, truncateAt } from "../support/corrupt.ts";
import { simulatedFile } from "../support/simulated_disk.ts";
import { preparedBatch } from "../support/prepared.ts";
import { pendingFile, smallBatches } from "../support/test_segment.ts";

async function readPieces(bytes: Uint8Array): Promise<BatchPiece[]> {
  const file = await simulatedFile(bytes);
  const pieces: BatchPiece[] = [];
  for await (const piece of batchPieces(file, bytes.length, "pending.ndjson")) pieces.push(piece);
  return pieces;
}

const LARGE = preparedBatch("large", {
  events: Array.from({ length: 20 }, (_, n) => ({ payload: "x".repeat(50_000 * (n % 3 + 1)) })),
});
const HUGE_LINE = preparedBatch("huge", { events: [{ payload: "y".repeat(3_000_000) }] });

test("batchPieces() gives every line once, in order, with the entry of its batch", async () => {
  const { bytes, lines, entries } = pendingFile([smallBatches(3), [LARGE, HUGE_LINE], []]);
  const pieces = await readPieces(bytes);
  assert.ok(Buffer.concat(pieces.map((piece) => piece.lines)).equals(lines));
  assert.deepEqual([...new Set(pieces.map((piece) => piece.entry))], entries);
  for (const { entry, lines } of pieces) {
    const [first] = lines.toString().split("\n");
    assert.equal(JSON.parse(first!).batch_id, entry.batch_id);
  }
});

test("batchPieces() tells the chain head with the last piece of a commit", async () => {
  const { bytes, head } = pendingFile([smallBatches(2), [LARGE]]);
  const heads = (await readPieces(bytes)).map((piece) => piece.head);
  assert.equal(heads.at(-1), head);
  assert.deepEqual(heads.slice(0, 2).map((head) => head === undefined), [true, false]);
  assert.ok(heads.slice(2, -1).every((head) => head === undefined));
});

test("batchPieces() refuses a file with any byte changed before it ends a commit", async () => {
  const { bytes } = pendingFile([smallBatches(2)]);
  for (let bit = 0; bit < bytes.length * 8; bit += 37) {
    await assert.rejects(readPieces(flipBit(bytes, bit)), CorruptLogError, `bit ${bit}`);
  }
});

test("batchPieces() refuses a file that is cut off", async () => {
  const { bytes } = pendingFile([smallBatches(2)]);
  for (const sizeBytes of [1, 100, bytes.length - 1]) {
    await assert.rejects(readPieces(truncateAt(bytes, sizeBytes)), CorruptLogError);
  }
});

test("batchPieces() refuses entries that count other lines than there are", async () => {
  const { bytes } = pendingFile([[LARGE]]);
  for (const events of ["19", "21"]) {
    const text = bytes.toString("latin1").replace('"events":20', `"events":${events}`);
    await assert.rejects(readPieces(repairFraming(Buffer.from(text, "latin1"))), /lines than/);
  }
});
