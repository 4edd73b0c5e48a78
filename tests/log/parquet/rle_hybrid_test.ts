import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRleHybrid, encodeRleHybrid } from "../../../src/log/parquet/rle_hybrid.ts";
import { SegmentError } from "../../../src/log/parquet/segment_error.ts";
import { SEED, SeededRandom } from "../../../tools/support/random.ts";

test("encodeRleHybrid() spells runs and groups as the format has them", () => {
  const hex = (values: number[], bitWidth: number) =>
    encodeRleHybrid(values, bitWidth).toString("hex");
  // The example of parquet-format, Encodings.md: 0 to 7, three bits each.
  assert.equal(hex([0, 1, 2, 3, 4, 5, 6, 7], 3), "03" + "88c6fa");
  assert.equal(hex(Array(100).fill(4), 3), "c801" + "04");
  assert.equal(hex(Array(8).fill(300), 9), "10" + "2c01");
  assert.equal(hex([1, 0, 1], 1), "03" + "05");
  assert.equal(hex(Array(9).fill(0), 0), "12");
  assert.equal(hex([], 3), "");
});

test(`decodeRleHybrid() gives back what encodeRleHybrid() wrote (seed ${SEED})`, () => {
  const random = new SeededRandom();
  for (let run = 0; run < 500; run++) {
    const bitWidth = random.below(13);
    const values: number[] = [];
    for (let runs = random.below(20); runs >= 0; runs--) {
      const value = random.below(2 ** bitWidth);
      values.push(...Array(1 + random.below(30)).fill(value));
    }
    const bytes = encodeRleHybrid(values, bitWidth);
    const decoded = new Uint16Array(values.length);
    assert.equal(decodeRleHybrid(bytes, 0, bytes.length, bitWidth, decoded), bytes.length);
    assert.deepEqual([...decoded], values);
  }
});

function decode(bytes: number[], bitWidth: number, count: number): number[] {
  const values = new Uint16Array(count);
  const end = decodeRleHybrid(Uint8Array.from(bytes), 0, bytes.length, bitWidth, values);
  assert.equal(end, bytes.length);
  return [...values];
}

test("decodeRleHybrid() decodes the example of the format", () => {
  // Encodings.md: the numbers 0 to 7 in 3 bits, in one bit-packed group.
  assert.deepEqual(decode([3, 0b10001000, 0b11000110, 0b11111010], 3, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.deepEqual(decode([10 << 1, 5], 3, 10), Array(10).fill(5));
});

const MALFORMED: [string, number[], number, number][] = [
  ["no bytes", [], 3, 1],
  ["a run without its value", [2 << 1], 3, 2],
  ["a run of nothing", [0, 0, 2 << 1, 1], 3, 2],
  ["a run past the last value", [3 << 1, 1], 3, 2],
  ["a run of two thousand million", [0xfe, 0xff, 0xff, 0xff, 0x0f, 1], 3, 4],
  ["a packed group cut off", [3, 0, 0], 3, 8],
  ["packed groups past the last value", [5, 0, 0, 0, 0, 0, 0], 3, 8],
  ["packed groups without bits, without end", [0xff, 0xff, 0xff, 0xff, 0x0f], 0, 8],
  ["a header without end", [0x80, 0x80, 0x80, 0x80, 0x80, 0x80], 3, 8],
  ["values that are too wide", [2 << 1, 0, 0, 0], 17, 2],
];

test("decodeRleHybrid() refuses malformed runs", () => {
  for (const [name, bytes, bitWidth, count] of MALFORMED) {
    assert.throws(() => decode(bytes, bitWidth, count), SegmentError, name);
  }
});
