/**
 * Prunes row groups: uses Bloom filters and min/max statistics to skip row groups that cannot
 * contain a match.
 */
import { Buffer } from "node:buffer";
import type { EventFilter } from "../line/stored_line.ts";
import { mayContain } from "../parquet/bloom_filter.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";
import type { LinesWanted } from "../read/snapshot.ts";
import { BOUNDED_COLUMNS, type RowGroup } from "./segment_footer.ts";
import type { Segment } from "./segment_reader.ts";

/**
 * Returns the row groups that may contain matching events after `after`, in log order.
 * @throws {SegmentError}
 */
export async function pruneRowGroups(
  segment: Segment,
  { after, filter }: Pick<LinesWanted, "after" | "filter">,
): Promise<number[]> {
  const tests: ((number: number) => boolean)[] = [];
  const sought = [["record_key", filter.recordKey], ["stream", filter.stream]] as const;
  for (const [column, value] of sought) {
    if (value === undefined) continue;
    const hash = xxhash64(Buffer.from(value));
    const filters = await segment.filters(column);
    // Most segments of a large log are skipped here. With cached filters, no footer is read.
    if (!filters.some((filter) => mayContain(filter, hash))) return [];
    tests.push((number) => mayContain(filters[number]!, hash));
  }
  const rowGroups = await segment.rowGroups();
  return [...rowGroups.keys()].filter((number) => {
    const rowGroup = rowGroups[number]!;
    const isLater = after === undefined || rowGroup.lastEventId > after;
    return isLater && isWithinBounds(rowGroup, filter) && tests.every((test) => test(number));
  });
}

function isWithinBounds({ bounds }: RowGroup, filter: EventFilter): boolean {
  return BOUNDED_COLUMNS.every((name) => {
    const value = filter[name];
    if (value === undefined) return true;
    const { min, max } = bounds[name];
    const bytes = Buffer.from(value);
    return Buffer.compare(min, bytes) <= 0 && Buffer.compare(bytes, max) <= 0;
  });
}
