/**
 * The statistics of a column, for the footer, and of each of its pages, for the column index: no
 * value lies outside of minimum and maximum. Both are values themselves, never cut, and absent
 * where there is no value.
 */
import { Buffer } from "node:buffer";
import type { Statistics } from "./parquet_format.ts";

/** Negative where `a` comes before `b`, positive where it comes behind. */
export type Compare = (a: Uint8Array, b: Uint8Array) => number;

/** The order of texts and ids: that of their bytes. */
export const compareBytes: Compare = (a, b) => Buffer.compare(a, b);

/** The order of INT64. */
export const compareIntegers: Compare = (a, b) => Number(integer(a) - integer(b));

function integer({ buffer, byteOffset, length }: Uint8Array): bigint {
  return Buffer.from(buffer, byteOffset, length).readBigInt64LE();
}

/** @param nulls how many rows have none of the values. */
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
  // Copies: values may lie in memory that is used again.
  return {
    null_count: nulls,
    max_value: max && Uint8Array.from(max),
    min_value: min && Uint8Array.from(min),
  };
}

/** The statistics of a column by those of its pages. */
export function mergeStatistics(pages: readonly Statistics[], compare: Compare): Statistics {
  const values = pages.flatMap(({ min_value, max_value }) => [min_value, max_value])
    .filter((value) => value !== undefined);
  return statisticsOf(values, compare, pages.reduce((sum, page) => sum + page.null_count, 0));
}
