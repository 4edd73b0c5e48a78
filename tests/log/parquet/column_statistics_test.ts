import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  compareBytes,
  compareIntegers,
  mergeStatistics,
  statisticsOf,
} from "../../../src/log/parquet/column_statistics.ts";

function integers(...values: bigint[]): Buffer[] {
  return values.map((value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    return bytes;
  });
}

test("statisticsOf() orders texts by their bytes, and integers by their values", () => {
  const texts = ["b", "é", "aa", "a", "ab"].map((text) => Buffer.from(text));
  const { min, max, nulls } = statisticsOf(texts, compareBytes, 2);
  assert.deepEqual([String(Buffer.from(min!)), String(Buffer.from(max!)), nulls], ["a", "é", 2]);
  const times = integers(256n, -1n, 3n, -(2n ** 62n), 2n ** 62n);
  const bounds = statisticsOf(times, compareIntegers);
  assert.deepEqual(
    [bounds.min, bounds.max],
    [times[3], times[4]].map((time) => Uint8Array.from(time!)),
  );
});

test("statisticsOf() copies values, and has none where there is no value", () => {
  const value = Buffer.from("a");
  const { min } = statisticsOf([value], compareBytes);
  value.write("b");
  assert.equal(Buffer.from(min!).toString(), "a");
  assert.deepEqual(statisticsOf([], compareBytes, 7), { min: null, max: null, nulls: 7 });
});

test("mergeStatistics() covers all pages, also those without a value", () => {
  const pages = [["b", "c"], [], ["a"]].map((texts) =>
    statisticsOf(texts.map((text) => Buffer.from(text)), compareBytes, 1)
  );
  const [a, c] = ["a", "c"].map((text) => Uint8Array.from(Buffer.from(text)));
  assert.deepEqual(mergeStatistics(pages, compareBytes), { min: a, max: c, nulls: 3 });
});
