/**
 * Min/max statistics of a column, for the footer and the column index. They are not truncated, and
 * are absent if the column has no values.
 */
import { Buffer } from "node:buffer";
import type { Statistics } from "./parquet_format.ts";

/** Negative if `a` sorts before `b`, positive if it sorts after. */
export type Compare = (a: Uint8Array, b: Uint8Array) => number;

/** Compares strings and ids bytewise. */
export const compareBytes: Compare = (a, b) => Buffer.compare(a, b);

/** Compares INT64 values. */
export const compareIntegers: Compare = (a, b) => Number(integer(a) - integer(b));

function integer({ buffer, byteOffset, length }: Uint8Array): bigint {
  return Buffer.from(buffer, byteOffset, length).readBigInt64LE();
}

/** @param nulls number of rows without a value. */
export function statisticsOf(
  values: Iterable<Uint8Array>,
  compare: Compare,
  nulls = 0,
): Statistics {
  let min: Uint8Array | undefined;
  let max: Uint8Array | undefined;
  for (const value of values) {
    if (min === undefined || compare(value, min) < 0) min = value;
    if (max === undefined || compare(value, max) > 0) max = value;
  }
  // Copy the values, which may be in a reused buffer.
  return {
    null_count: nulls,
    max_value: max && Uint8Array.from(max),
    min_value: min && Uint8Array.from(min),
  };
}
