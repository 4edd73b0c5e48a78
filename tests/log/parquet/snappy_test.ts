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

/** Texts with runs and repetitions of all lengths, up to past the reach of a copy. */
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

test(`snappyCompress() is undone by two decoders (seed ${SEED})`, () => {
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

/** Elements of all forms, also those that `snappyCompress()` never uses, and what they mean. */
function elements(random: SeededRandom): { block: Buffer; output: Buffer } {
  const block: number[] = [];
  const output: number[] = [];
  const pushUint = (value: number, sizeBytes: number) => {
    for (let i = 0; i < sizeBytes; i++) block.push(value >>> 8 * i & 0xff);
  };
  for (let count = random.below(30); count >= 0; count--) {
    const kind = output.length === 0 ? 0 : random.below(4);
    if (kind === 0) {
      const length = 1 + random.below(random.pick([60, 256, 3000]));
      const lengthBytes = random.pick(
        [0, 1, 2, 3, 4].filter((size) => size === 0 ? length <= 60 : length <= 256 ** size),
      );
      block.push((lengthBytes === 0 ? length - 1 : 59 + lengthBytes) << 2);
      pushUint(length - 1, lengthBytes);
      for (let i = 0; i < length; i++) {
        const byte = random.below(256);
        block.push(byte);
        output.push(byte);
      }
    } else {
      const length = kind === 1 ? 4 + random.below(8) : 1 + random.below(64);
      const offset = 1 + random.below(Math.min(output.length, kind === 1 ? 2047 : 65_535));
      if (kind === 1) block.push(offset >> 8 << 5 | length - 4 << 2 | 1, offset & 0xff);
      else {
        block.push(length - 1 << 2 | kind);
        pushUint(offset, kind === 2 ? 2 : 4);
      }
      for (let i = 0; i < length; i++) output.push(output[output.length - offset]!);
    }
  }
  const sizeBytes = [output.length & 0x7f | 0x80, output.length >> 7 & 0x7f | 0x80];
  return {
    block: Buffer.from([...sizeBytes, output.length >> 14, ...block]),
    output: Buffer.from(output),
  };
}

test(`snappyDecompress() undoes every form of an element (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 500; run++) {
    const { block, output } = elements(random);
    assert.ok(decompress(block, output.length).equals(output));
  }
});

test("snappyCompress() makes repetitions small, up to the growth that a reader allows", () => {
  const input = Buffer.alloc(1_000_000, "x");
  const block = snappyCompress(input);
  assert.ok(block.length < input.length / 20, `${block.length} bytes`);
  assert.ok(input.length <= block.length * SNAPPY_GROWTH_MAX);
});

const MALFORMED: [string, number[], number][] = [
  ["nothing for some bytes", [], 1],
  ["a literal cut off", [3, 2 << 2, 1, 2], 3],
  ["a literal longer than the output", [2, 2 << 2, 1, 2, 3], 2],
  ["a literal of a negative length", [1, 63 << 2, 0xfe, 0xff, 0xff, 0xff, 0], 1],
  ["a copy from before the start", [5, 0 << 2, 7, 0 << 2 | 1, 2], 5],
  ["a copy of offset 0", [5, 0 << 2, 7, 0 << 2 | 1, 0], 5],
  ["a copy longer than the output", [3, 0 << 2, 7, 4 << 2 | 1, 1], 3],
  ["a copy cut off", [5, 0 << 2, 7, 3 << 2 | 2, 1], 5],
  ["fewer bytes than the output has", [1, 0 << 2, 7], 2],
];

test("snappyDecompress() refuses malformed blocks", () => {
  for (const [name, block, sizeBytes] of MALFORMED) {
    assert.throws(() => decompress(Uint8Array.from(block), sizeBytes), SegmentError, name);
  }
});

test(`snappyDecompress() ends on any bytes (seed ${SEED})`, () => {
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
