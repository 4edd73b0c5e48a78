/**
 * Looks for the events of a row group that pass a filter by the columns that the filter names, so
 * that few events cost the pages that hold them and not the whole row group.
 */
import { Buffer } from "node:buffer";
import { rowsWith, type WantedValue } from "../parquet/column_values.ts";
import { withDecodeMemory } from "../parquet/decode_memory.ts";
import type { KeyRows } from "./key_rows.ts";
import type { Segment } from "./segment_reader.ts";
import type { ColumnName } from "./segment_schema.ts";
import type { EventFilter } from "../line/stored_line.ts";

/**
 * The rows, increasing, among which are those of all events that pass a filter; few others, and
 * none without a key in the filter. Null when it lets all pass. @throws {SegmentError}
 */
export async function findRows(
  segment: Segment,
  number: number,
  { recordKey, stream, source, kind }: EventFilter,
  keyRows: KeyRows,
): Promise<number[] | null> {
  if (recordKey !== undefined) return await keyRows.find(segment, number, recordKey);
  // The column that leaves the fewest rows over comes first.
  const members: [ColumnName, string | undefined][] = [
    ["stream", stream],
    ["kind", kind],
    ["source", source],
  ];
  return await withDecodeMemory(async (memory) => {
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
