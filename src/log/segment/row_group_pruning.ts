/** Prunes row groups: skips those whose key filters show that they cannot contain a match. */
import type { Hash64 } from "../line/bloom_block.ts";
import type { EventFilter } from "../line/stored_line.ts";
import type { LinesWanted } from "../read/snapshot.ts";
import { mayHoldKey, valueKeyHash } from "./key_filter.ts";
import type { Segment } from "./segment_reader.ts";

/**
 * Returns the row groups that may contain matching events after `after`, in log order.
 * @throws {SegmentError}
 */
export async function pruneRowGroups(
  segment: Segment,
  { after, filter }: Pick<LinesWanted, "after" | "filter">,
): Promise<number[]> {
  const hashes = hashesOf(filter);
  const filters = hashes.length > 0 ? await segment.rowFilters() : [];
  const mayMatch = (number: number) => hashes.every((hash) => mayHoldKey(filters[number]!, hash));
  // Most segments of a large log are skipped here. With cached filters, no footer is read.
  if (hashes.length > 0 && !filters.some((_, number) => mayMatch(number))) return [];
  const rowGroups = await segment.rowGroups();
  return [...rowGroups.keys()].filter((number) => {
    const isLater = after === undefined || rowGroups[number]!.lastEventId > after;
    return isLater && mayMatch(number);
  });
}

/** Returns the keys that all row groups with a match contain. */
function hashesOf({ source, stream, recordKey, kind }: EventFilter): Hash64[] {
  const values = [["source", source], ["stream", stream], ["kind", kind]] as const;
  const sought = [...values, ["record_key", recordKey] as const];
  return sought.flatMap(([column, value]) =>
    value === undefined ? [] : [valueKeyHash(column, value)]
  );
}
