import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeBitPacked, encodeBitPacked } from "../../../src/log/parquet/bit_packed.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

test("encodeBitPacked() encodes runs as the format specifies", () => {
  // Example from parquet-format's Encodings.md: the numbers 0 to 7 in three bits each.
  assert.equal(encodeBitPacked([0, 1, 2, 3, 4, 5, 6, 7], 3).toString("hex"), "03" + "88c6fa");
  assert.equal(encodeBitPacked([1, 0, 1], 1).toString("hex"), "03" + "05");
});

test(`decodeBitPacked() restores what encodeBitPacked() wrote (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 500; run++) {
    const bitWidth = random.below(13);
    const values = Array.from({ length: random.below(1025) }, () => random.below(2 ** bitWidth));
    const bytes = encodeBitPacked(values, bitWidth);
    assert.deepEqual([...decodeBitPacked(bytes, values.length, bitWidth)], values);
  }
});

const MALFORMED: [string, number[], number, number][] = [
  ["no bytes", [], 3, 1],
  ["a run of two billion values", [0xfe, 0xff, 0xff, 0xff, 0x0f, 1], 3, 4],
  ["a truncated packed group", [3, 0, 0], 3, 8],
  ["packed groups past the last value", [5, 0, 0, 0, 0, 0, 0], 3, 8],
  ["endless packed groups of zero bits", [0xff, 0xff, 0xff, 0xff, 0x0f], 0, 8],
  ["values that are too wide", [3, ...Array(17).fill(0)], 17, 8],
];

test("decodeBitPacked() rejects malformed runs", () => {
  for (const [name, bytes, bitWidth, count] of MALFORMED) {
    assert.throws(
      () => decodeBitPacked(Uint8Array.from(bytes), count, bitWidth),
      SegmentError,
      name,
    );
  }
});
