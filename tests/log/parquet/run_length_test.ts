import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteWriter } from "hyparquet-writer";
import { writeRleBitPackedHybrid } from "hyparquet-writer/src/encoding.js";
import { decodeRunLengths } from "../../../src/log/parquet/run_length.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

function decode(bytes: number[], bitWidth: number, count: number): number[] {
  const codes = new Uint16Array(count);
  const end = decodeRunLengths(Uint8Array.from(bytes), 0, bytes.length, bitWidth, codes);
  assert.equal(end, bytes.length);
  return [...codes];
}

test("decodeRunLengths() decodes the example of the format", () => {
  // Encodings.md: the numbers 0 to 7 in 3 bits, in one bit-packed group.
  assert.deepEqual(decode([3, 0b10001000, 0b11000110, 0b11111010], 3, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual(decode([10 << 1, 5], 3, 10), Array(10).fill(5));
});

test(`decodeRunLengths() decodes what the Parquet writer encodes (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 300; run++) {
    const bitWidth = random.below(14);
    const values: number[] = [];
    for (let parts = 1 + random.below(8); parts > 0; parts--) {
      const isRun = random.chance(0.5);
      const value = random.below(2 ** bitWidth);
      for (let count = 1 + random.below(40); count > 0; count--) {
        values.push(isRun ? value : random.below(2 ** bitWidth));
      }
    }
    const writer = new ByteWriter();
    writeRleBitPackedHybrid(writer, values, bitWidth);
    assert.deepEqual(decode([...writer.getBytes()], bitWidth, values.length), values);
  }
});

const MALFORMED: [string, number[], number, number][] = [
  ["no bytes", [], 3, 1],
  ["a run without its value", [2 << 1], 3, 2],
  ["a run of nothing", [0, 0, 2 << 1, 1], 3, 2],
  ["a run past the last code", [3 << 1, 1], 3, 2],
  ["a run of two thousand million", [0xfe, 0xff, 0xff, 0xff, 0x0f, 1], 3, 4],
  ["a packed group cut off", [3, 0, 0], 3, 8],
  ["packed groups past the last code", [5, 0, 0, 0, 0, 0, 0], 3, 8],
  ["packed groups without bits, without end", [0xff, 0xff, 0xff, 0xff, 0x0f], 0, 8],
  ["a header without end", [0x80, 0x80, 0x80, 0x80, 0x80, 0x80], 3, 8],
  ["codes that are too wide", [2 << 1, 0, 0, 0], 17, 2],
];

test("decodeRunLengths() refuses malformed runs", () => {
  for (const [name, bytes, bitWidth, count] of MALFORMED) {
    assert.throws(() => decode(bytes, bitWidth, count), SegmentError, name);
  }
});
