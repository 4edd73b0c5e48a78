import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { snappyUncompress } from "hyparquet";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import {
  SNAPPY_GROWTH_MAX,
  snappyCompress,
  snappyDecompress,
} from "../../../src/log/parquet/snappy.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

function decompress(block: Uint8Array, sizeBytes: number): Buffer {
  const out = Buffer.alloc(sizeBytes);
  snappyDecompress(block, out);
  return out;
}

/** Data with runs and repetitions of all lengths, some farther back than a copy can reach. */
function sample(random: SeededRandom): Buffer {
  const pieces: Buffer[] = [];
  for (let count = random.below(30); count > 0; count--) {
    const piece = Buffer.alloc(random.pick([1, 3, 4, 11, 59, 60, 61, 70, 256, 257, 3000, 70_000]));
    if (random.chance(0.5)) random.bytes(piece);
    else piece.fill(random.pick(["a", "ab", "abcd ", "order-17;"]));
    pieces.push(random.chance(0.3) && pieces.length > 0 ? random.pick(pieces) : piece);
  }
  return Buffer.concat(pieces);
}

test(`two decoders restore what snappyCompress() wrote (seed ${SEED})`, () => {
  const random = new SeededRandom();
  const inputs: Uint8Array[] = [Buffer.alloc(0), Buffer.from("a"), Buffer.alloc(2_000_000, "long")];
  for (let run = 0; run < 100; run++) inputs.push(sample(random));
  for (const input of inputs) {
    const block = snappyCompress(input);
    assert.ok(decompress(block, input.length).equals(input));
    const reference = new Uint8Array(input.length);
    snappyUncompress(block, reference);
    assert.deepEqual(Buffer.compare(input, reference), 0);
  }
});

test("snappyCompress() compresses repetitions up to the ratio that a reader allows", () => {
  const input = Buffer.alloc(1_000_000, "x");
  const block = snappyCompress(input);
  assert.ok(block.length < input.length / 20, `${block.length} bytes`);
  assert.ok(input.length <= block.length * SNAPPY_GROWTH_MAX);
});

const MALFORMED: [string, number[], number][] = [
  ["no input for some output", [], 1],
  ["a truncated literal", [3, 2 << 2, 1, 2], 3],
  ["a literal longer than the output", [2, 2 << 2, 1, 2, 3], 2],
  ["a literal of negative length", [1, 63 << 2, 0xfe, 0xff, 0xff, 0xff, 0], 1],
  ["a copy from before the start", [5, 0 << 2, 7, 0 << 2 | 1, 2], 5],
  ["a copy with offset 0", [5, 0 << 2, 7, 0 << 2 | 1, 0], 5],
  ["a copy longer than the output", [3, 0 << 2, 7, 4 << 2 | 1, 1], 3],
  ["a copy with an offset of four bytes", [5, 0 << 2, 7, 3 << 2 | 3, 1, 0, 0, 0], 5],
  ["a truncated copy", [5, 0 << 2, 7, 3 << 2 | 2, 1], 5],
  ["fewer bytes than the output has", [1, 0 << 2, 7], 2],
];

test("snappyDecompress() rejects malformed blocks", () => {
  for (const [name, block, sizeBytes] of MALFORMED) {
    assert.throws(() => decompress(Uint8Array.from(block), sizeBytes), SegmentError, name);
  }
});

test(`snappyDecompress() terminates on any input (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 20_000; run++) {
    const block = Buffer.alloc(random.below(40));
    random.bytes(block);
    try {
      decompress(block, random.below(200));
    } catch (error) {
      assert.ok(error instanceof SegmentError);
    }
  }
});
