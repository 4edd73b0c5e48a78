/** Counts the events per stream in the rows of a segment. */
import { firstIndex } from "../../first_index.ts";
import { type ColumnValues, textAt, uuidAt } from "./column_values.ts";
import { StreamCounts } from "../read/stream_counts.ts";
import type { Segment } from "./segment_reader.ts";

/** The columns that identify the stream of an event. */
const STREAM_COLUMNS = ["event_id", "source", "stream"] as const;

/** Receives the event count for a stream in a row group, and the row of its last event. */
type AddEvents = (source: string, stream: string, events: number, lastRow: number) => void;

/**
 * Counts the first `rows` rows in a row group. If names are not dictionary-encoded, `add` may be
 * called several times for a stream, with the latest events first.
 */
export function countRows(
  { source, stream }: Record<"source" | "stream", ColumnValues>,
  rows: number,
  add: AddEvents,
): void {
  // Keyed by the names' offsets; rows with the same dictionary value share an offset.
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
 * Counts the events per stream up to and including an event; null if the segment does not contain
 * it. Reads the row groups up to that event. @throws {SegmentError}
 */
export async function countThrough(
  segment: Segment,
  eventId: string,
): Promise<StreamCounts | null> {
  const rowGroups = await segment.rowGroups();
  const last = rowGroups.findIndex((group) => group.lastEventId >= eventId);
  if (last < 0) return null;
  const counts = new StreamCounts();
  // Start with the event's row group, to return early if the event does not exist.
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

/** Returns the number of rows up to and including an event; null if no row has its id. */
function rowsThrough(ids: ColumnValues, eventId: string): number | null {
  const rows = ids.starts.length;
  const row = firstIndex(rows, (row) => uuidAt(ids, row) >= eventId);
  return row < rows && uuidAt(ids, row) === eventId ? row + 1 : null;
}
