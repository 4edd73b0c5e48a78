/**
 * Bounds for the footer (statistics) and the page index: no value of a row group, or of a page,
 * lies outside them.
 */
import { Buffer } from "node:buffer";
import type { ColumnBounds } from "../parquet/column_chunk.ts";
import { UUID_BYTES } from "../line/line_bytes.ts";
import type { PlainValues } from "../parquet/plain_values.ts";

/** Of ids, which increase: of each page the first and the last one. */
export function idBounds(ids: PlainValues): ColumnBounds {
  const pages = ids.pages();
  const firsts = pages.map(({ bytes }) => Uint8Array.from(bytes.subarray(0, UUID_BYTES)));
  const lasts = pages.map(({ bytes }) => Uint8Array.from(bytes.subarray(-UUID_BYTES)));
  return {
    column: { min_value: firsts[0]!, max_value: lasts.at(-1)!, null_count: 0n },
    pages: {
      null_pages: pages.map(() => false),
      min_values: firsts,
      max_values: lasts,
      boundary_order: "ASCENDING",
      null_counts: pages.map(() => 0n),
    },
  };
}

/** Of texts, in the order of their bytes. @param rows of the column, some without a value. */
export function textBounds(values: Iterable<Uint8Array>, rows: number): ColumnBounds {
  let min: Uint8Array | null = null;
  let max: Uint8Array | null = null;
  let count = 0;
  for (const value of values) {
    if (min === null || Buffer.compare(value, min) < 0) min = value;
    if (max === null || Buffer.compare(value, max) > 0) max = value;
    count += 1;
  }
  return {
    column: {
      ...(min !== null && { min_value: Uint8Array.from(min) }),
      ...(max !== null && { max_value: Uint8Array.from(max) }),
      null_count: BigInt(rows - count),
    },
  };
}

/** Of times in milliseconds, each as the eight bytes that Parquet stores. */
export function timeBounds(values: readonly Uint8Array[]): ColumnBounds {
  const times = values.map((bytes) => Buffer.from(bytes).readBigInt64LE());
  const min_value = times.reduce((min, time) => time < min ? time : min);
  const max_value = times.reduce((max, time) => time > max ? time : max);
  return { column: { min_value, max_value, null_count: 0n } };
}
