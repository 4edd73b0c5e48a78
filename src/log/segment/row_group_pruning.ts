/** Prunes row groups: skips those that, by the segment's index, cannot contain a match. */
import { filterHashes } from "../index/key_hash.ts";
import type { LinesWanted } from "../read/snapshot.ts";
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
  for (const hash of filterHashes(filter)) {
    const found = await segment.rowGroupsWith("locations", hash);
    numbers = numbers?.filter((number) => found.includes(number)) ?? found;
    if (numbers.length === 0) return [];
  }
  const rowGroups = await segment.rowGroups();
  return (numbers ?? [...rowGroups.keys()]).filter((number) =>
    after === undefined || rowGroups[number]!.lastEventId > after
  );
}
