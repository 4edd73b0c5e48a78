/**
 * Looks for the events of a row group that pass a filter by the columns that the filter names, so
 * that few events cost the pages that hold them and not the whole row group.
 */
import { Buffer } from "node:buffer";
import { rowsWith, type WantedValue } from "./column_values.ts";
import { withDecodeMemory } from "./decode_memory.ts";
import type { Segment } from "./segment_reader.ts";
import type { ColumnName } from "./segment_schema.ts";
import type { EventFilter } from "./stored_line.ts";

/**
 * The rows, increasing, of the events that pass a filter; null when it lets all pass.
 * @throws {SegmentError}
 */
export function findRows(
  segment: Segment,
  number: number,
  { recordKey, stream, source, kind }: EventFilter,
): Promise<number[] | null> {
  // The column that leaves the fewest rows over comes first.
  const members: [ColumnName, string | undefined][] = [
    ["record_key", recordKey],
    ["stream", stream],
    ["kind", kind],
    ["source", source],
  ];
  return withDecodeMemory(async (memory) => {
    const wanted: WantedValue[] = [];
    for (const [name, value] of members) {
      if (value === undefined) continue;
      const columns = await segment.readColumns(number, [name], { memory });
      wanted.push([columns[name]!, Buffer.from(value)]);
    }
    const [first, ...others] = wanted;
    return first === undefined ? null : rowsWith([first, ...others]);
  });
}
