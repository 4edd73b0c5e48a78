/**
 * Prunes row groups: uses the segment's index and min/max statistics to skip row groups that cannot
 * contain a match.
 */
import { Buffer } from "node:buffer";
import type { EventFilter } from "../line/stored_line.ts";
import { valueHash } from "../index/key_hash.ts";
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
  let numbers = null as readonly number[] | null;
  const sought = [["record_key", filter.recordKey], ["stream", filter.stream]] as const;
  for (const [column, value] of sought) {
    if (value === undefined) continue;
    const found = await segment.rowGroupsWith("locations", valueHash(column, value));
    numbers = numbers?.filter((number) => found.includes(number)) ?? found;
    if (numbers.length === 0) return [];
  }
  const rowGroups = await segment.rowGroups();
  return (numbers ?? [...rowGroups.keys()]).filter((number) => {
    const rowGroup = rowGroups[number]!;
    const isLater = after === undefined || rowGroup.lastEventId > after;
    return isLater && isWithinBounds(rowGroup, filter);
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
