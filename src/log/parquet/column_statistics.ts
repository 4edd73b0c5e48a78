/**
 * The statistics of a column, for the footer, and of each of its pages, for the column index: no
 * value lies outside of `min` and `max`. Both are values themselves, never cut.
 */
import { Buffer } from "node:buffer";

export interface Statistics {
  /** Null where there is no value, and so is `max`. */
  min: Uint8Array | null;
  max: Uint8Array | null;
  /** How many rows have no value. */
  nulls: number;
}

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
  let min: Uint8Array | null = null;
  let max: Uint8Array | null = null;
  for (const value of values) {
    if (min === null || compare(value, min) < 0) min = value;
    if (max === null || compare(value, max) > 0) max = value;
  }
  // Copies: values may lie in memory that is used again.
  return { min: min && Uint8Array.from(min), max: max && Uint8Array.from(max), nulls };
}

/** The statistics of a column by those of its pages. */
export function mergeStatistics(pages: readonly Statistics[], compare: Compare): Statistics {
  const values = pages.flatMap(({ min, max }) => [min, max]).filter((value) => value !== null);
  return statisticsOf(values, compare, pages.reduce((sum, { nulls }) => sum + nulls, 0));
}
