import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  compareBytes,
  compareIntegers,
  statisticsOf,
} from "../../../src/log/parquet/column_statistics.ts";

function integers(...values: bigint[]): Buffer[] {
  return values.map((value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(value);
    return bytes;
  });
}

test("statisticsOf() orders strings by bytes and integers by value", () => {
  const texts = ["b", "é", "aa", "a", "ab"].map((text) => Buffer.from(text));
  const { min_value: min, max_value: max, null_count } = statisticsOf(texts, compareBytes, 2);
  assert.deepEqual([min, max].map((value) => String(Buffer.from(value!))), ["a", "é"]);
  assert.equal(null_count, 2);
  const times = integers(256n, -1n, 3n, -(2n ** 62n), 2n ** 62n);
  const bounds = statisticsOf(times, compareIntegers);
  assert.deepEqual(
    [bounds.min_value, bounds.max_value],
    [times[3], times[4]].map((time) => Uint8Array.from(time!)),
  );
});

test("statisticsOf() copies values, and omits minimum and maximum if there are none", () => {
  const value = Buffer.from("a");
  const { min_value } = statisticsOf([value], compareBytes);
  value.write("b");
  assert.equal(Buffer.from(min_value!).toString(), "a");
  const none = { null_count: 7, max_value: undefined, min_value: undefined };
  assert.deepEqual(statisticsOf([], compareBytes, 7), none);
});
