/** Counts the events of each stream in the rows of a segment. */
import { firstIndex } from "../../first_index.ts";
import { type ColumnValues, textAt, uuidAt } from "../parquet/column_values.ts";
import { StreamCounts } from "../read/stream_counts.ts";
import type { Segment } from "./segment_reader.ts";

/** The columns that tell the stream of an event. */
const STREAM_COLUMNS = ["event_id", "source", "stream"] as const;

/** Receives the events of one stream of a row group, and the row of the last one. */
type AddEvents = (source: string, stream: string, events: number, lastRow: number) => void;

/**
 * Counts the first `rows` rows of a row group. A stream mostly comes once; where its names are in
 * no dictionary it comes again, always the latest events first.
 */
export function countRows(
  { source, stream }: Record<"source" | "stream", ColumnValues>,
  rows: number,
  add: AddEvents,
): void {
  // By where the names are: most rows share those of a dictionary.
  const counted = new Map<string, { events: number; lastRow: number }>();
  for (let row = rows - 1; row >= 0; row--) {
    const names = `${source.starts[row]} ${stream.starts[row]}`;
    const known = counted.get(names);
    if (known === undefined) counted.set(names, { events: 1, lastRow: row });
    else known.events += 1;
  }
  for (const { events, lastRow } of counted.values()) {
    add(textAt(source, lastRow), textAt(stream, lastRow), events, lastRow);
  }
}

/**
 * Counts the streams of a segment up to an event; null when the segment does not hold that event.
 * Reads the row groups up to that of the event. @throws {SegmentError}
 */
export async function countThrough(
  segment: Segment,
  eventId: string,
): Promise<StreamCounts | null> {
  const rowGroups = await segment.rowGroups();
  const last = rowGroups.findIndex((group) => group.lastEventId >= eventId);
  if (last < 0) return null;
  const counts = new StreamCounts();
  // The row group of the event first: there may be no such event.
  for (let number = last; number >= 0; number--) {
    const columns = await segment.readColumns(number, STREAM_COLUMNS);
    const rows = number < last ? rowGroups[number]!.rows : rowsThrough(columns.event_id, eventId);
    if (rows === null) return null;
    countRows(columns, rows, (source, stream, events, lastRow) => {
      counts.add(source, stream, events, uuidAt(columns.event_id, lastRow));
    });
  }
  return counts;
}

/** Number of rows up to that of an event; null when it is not among them. */
function rowsThrough(ids: ColumnValues, eventId: string): number | null {
  const rows = ids.starts.length;
  const row = firstIndex(rows, (row) => uuidAt(ids, row) >= eventId);
  return row < rows && uuidAt(ids, row) === eventId ? row + 1 : null;
}
