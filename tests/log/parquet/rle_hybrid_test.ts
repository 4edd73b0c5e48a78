import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeRleHybrid } from "../../../src/log/parquet/rle_hybrid.ts";
import { decodeRunLengths } from "../../../src/log/parquet/run_length.ts";
import { SEED, SeededRandom } from "../../event/support/seeded_random.ts";

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

test(`decodeRunLengths() gives back what encodeRleHybrid() wrote (seed ${SEED})`, () => {
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
    assert.equal(decodeRunLengths(bytes, 0, bytes.length, bitWidth, decoded), bytes.length);
    assert.deepEqual([...decoded], values);
  }
});
