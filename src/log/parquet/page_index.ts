/**
 * The page indexes of a column of a row group (parquet.thrift, ColumnIndex and OffsetIndex), by
 * which other engines read single pages.
 */
import type { Buffer } from "node:buffer";
import type { Statistics } from "./column_statistics.ts";
import {
  binary,
  encodeThrift,
  FALSE,
  i32,
  i64,
  list,
  struct,
  type ThriftFields,
  TRUE,
} from "./thrift_compact.ts";

/** A data page, its header included. */
export interface PageLocation {
  offset: number;
  bytes: number;
  /** Its first row, counted from that of the row group. */
  firstRow: number;
}

const COLUMN_INDEX = { nullPages: 1, mins: 2, maxs: 3, order: 4, nullCounts: 5 };
const OFFSET_INDEX = { locations: 1 };
const LOCATION = { offset: 1, bytes: 2, firstRow: 3 };

/** The order of the pages is not told: a row group has few. */
const UNORDERED = 0;
const NO_VALUE = new Uint8Array();

export function encodeColumnIndex(pages: readonly Statistics[]): Buffer {
  return encodeThrift({
    [COLUMN_INDEX.nullPages]: list(pages.map(({ min }) => min === null ? TRUE : FALSE)),
    [COLUMN_INDEX.mins]: list(pages.map(({ min }) => binary(min ?? NO_VALUE))),
    [COLUMN_INDEX.maxs]: list(pages.map(({ max }) => binary(max ?? NO_VALUE))),
    [COLUMN_INDEX.order]: i32(UNORDERED),
    [COLUMN_INDEX.nullCounts]: list(pages.map(({ nulls }) => i64(nulls))),
  });
}

export function encodeOffsetIndex(pages: readonly PageLocation[]): Buffer {
  return encodeThrift({
    [OFFSET_INDEX.locations]: list(pages.map((page) => struct(locationFields(page)))),
  });
}

function locationFields({ offset, bytes, firstRow }: PageLocation): ThriftFields {
  return {
    [LOCATION.offset]: i64(offset),
    [LOCATION.bytes]: i32(bytes),
    [LOCATION.firstRow]: i64(firstRow),
  };
}
