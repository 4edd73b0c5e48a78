/**
 * Row group pruning: column statistics (minimum and maximum) and Bloom filters tell which row
 * groups cannot hold a match, without reading them.
 */
import { Buffer } from "node:buffer";
import type { EventFilter } from "../line/stored_line.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";
import { mayHold } from "./bloom_filter_cache.ts";
import { type ColumnName, columnNumber, type FilteredColumn } from "./segment_schema.ts";
import type { Segment } from "./segment_reader.ts";

/** Whether a row group may hold a match. */
type RowGroupTest = (number: number) => boolean;

/**
 * The row groups from `first` on, in log order, that may hold a match of a filter.
 * @throws {SegmentError}
 */
export async function pruneRowGroups(
  segment: Segment,
  filter: EventFilter,
  first = 0,
): Promise<number[]> {
  const { source, stream, recordKey, kind } = filter;
  const tests = [
    byStatistics(segment, "source", source),
    byStatistics(segment, "stream", stream),
    byStatistics(segment, "kind", kind),
    await byBloomFilters(segment, "stream", stream),
    await byBloomFilters(segment, "record_key", recordKey),
  ].filter((test) => test !== null);
  const numbers: number[] = [];
  for (let number = first; number < segment.rowGroups.length; number++) {
    if (tests.every((mayMatch) => mayMatch(number))) numbers.push(number);
  }
  return numbers;
}

/** The row groups that may hold a batch of that id. @throws {SegmentError} */
export async function rowGroupsWithBatch(segment: Segment, batchId: string): Promise<number[]> {
  const mayMatch = (await byBloomFilters(segment, "batch_id", batchId))!;
  return [...segment.rowGroups.keys()].filter(mayMatch);
}

/** Null without a value. */
function byStatistics(
  { rowGroups }: Segment,
  name: ColumnName,
  value: string | undefined,
): RowGroupTest | null {
  if (value === undefined) return null;
  const bytes = Buffer.from(value).toString("latin1");
  const place = columnNumber(name);
  return (number) => {
    const { bounds } = rowGroups[number]!.columns[place]!;
    return bounds === null || bounds.min <= bytes && bytes <= bounds.max;
  };
}

/** Null without a value. */
async function byBloomFilters(
  segment: Segment,
  name: FilteredColumn,
  value: string | undefined,
): Promise<RowGroupTest | null> {
  if (value === undefined) return null;
  const filters = await segment.filters(name);
  const hash = xxhash64(Buffer.from(value));
  return (number) => mayHold(filters, number, hash);
}
