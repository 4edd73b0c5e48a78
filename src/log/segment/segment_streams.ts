/** Counts the events of each stream in the rows of a segment. */
import { firstIndex } from "../../first_index.ts";
import { type ColumnValues, textAt, uuidAt } from "../parquet/column_values.ts";
import { StreamCounts } from "../read/stream_counts.ts";
import type { Segment } from "./segment_reader.ts";

/** The columns that tell the stream of an event. */
const STREAM_COLUMNS = ["event_id", "source", "stream"] as const;
type StreamColumns = Record<typeof STREAM_COLUMNS[number], ColumnValues>;

/** Receives the events of one stream of a row group, and the row of the last one. */
type AddEvents = (source: string, stream: string, events: number, lastRow: number) => void;

interface Rows {
  events: number;
  lastRow: number;
}

/**
 * Counts the first `rows` rows of a row group. A stream mostly comes once; where its names are in
 * no dictionary it comes again, always the latest events first.
 */
export function countRows(
  { source, stream }: Pick<StreamColumns, "source" | "stream">,
  rows: number,
  add: AddEvents,
): void {
  // By where the names are: most rows share those of a dictionary.
  const bySource = new Map<number, Map<number, Rows>>();
  for (let row = rows - 1; row >= 0; row--) {
    const sourceStart = source.starts[row]!;
    let streams = bySource.get(sourceStart);
    if (streams === undefined) bySource.set(sourceStart, streams = new Map());
    const streamStart = stream.starts[row]!;
    const counted = streams.get(streamStart);
    if (counted === undefined) streams.set(streamStart, { events: 1, lastRow: row });
    else counted.events += 1;
  }
  const names = new Map<number, string>();
  for (const streams of bySource.values()) {
    let sourceName: string | null = null;
    for (const [streamStart, { events, lastRow }] of streams) {
      sourceName ??= textAt(source, lastRow);
      let name = names.get(streamStart);
      if (name === undefined) names.set(streamStart, name = textAt(stream, lastRow));
      add(sourceName, name, events, lastRow);
    }
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
  const last = segment.rowGroups.findIndex((group) => group.lastEventId >= eventId);
  if (last < 0) return null;
  const counts = new StreamCounts();
  // The row group of the event first: there may be no such event.
  for (let number = last; number >= 0; number--) {
    const columns = await segment.readColumns(number, STREAM_COLUMNS);
    const rows = number < last
      ? segment.rowGroups[number]!.rows
      : rowsThrough(columns.event_id, eventId);
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
