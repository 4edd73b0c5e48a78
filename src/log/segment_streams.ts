/** The streams of rows, counted from the few columns that tell them. */
import { type ColumnValues, textAt, uuidAt } from "./column_values.ts";
import type { StreamCount } from "./segment_metadata.ts";
import type { Segment } from "./segment_reader.ts";
import { StreamCounter } from "./stream_counter.ts";

/** The columns that tell the stream of an event. */
const STREAM_COLUMNS = ["event_id", "source", "stream"] as const;
type StreamColumns = Record<typeof STREAM_COLUMNS[number], ColumnValues>;

/** Takes in events of one stream, the last of which has that id. */
type AddEvents = (source: string, stream: string, events: number, lastEventId: string) => void;

/** Counts the first `rows` rows of a row group, each stream once. */
export function countRows(columns: StreamColumns, rows: number, add: AddEvents): void {
  const { event_id, source, stream } = columns;
  // By the places of the two names: most rows share those of a dictionary, and many that of the
  // row before.
  const counts = new Map<number, { events: number; lastRow: number }>();
  for (let row = 0; row < rows;) {
    const firstRow = row;
    const sourceStart = source.starts[row]!;
    const streamStart = stream.starts[row]!;
    do row += 1; while (
      row < rows && stream.starts[row] === streamStart && source.starts[row] === sourceStart
    );
    const places = sourceStart * stream.bytes.length + streamStart;
    const events = row - firstRow + (counts.get(places)?.events ?? 0);
    counts.set(places, { events, lastRow: row - 1 });
  }
  for (const { events, lastRow } of byLastRow(counts.values())) {
    add(textAt(source, lastRow), textAt(stream, lastRow), events, uuidAt(event_id, lastRow));
  }
}

/** Names that are in the dictionary twice, or in none, must still be told in log order. */
function byLastRow<Item extends { lastRow: number }>(items: Iterable<Item>): Item[] {
  return [...items].sort((a, b) => a.lastRow - b.lastRow);
}

/**
 * The streams of a segment's events up to one, in order of source, then stream; null when it does
 * not hold that event. Reads the row groups up to that of the event. @throws {SegmentError}
 */
export async function countThrough(
  segment: Segment,
  eventId: string,
): Promise<StreamCount[] | null> {
  const last = segment.rowGroups.findIndex((group) => group.lastEventId >= eventId);
  if (last < 0) return null;
  const counter = new StreamCounter();
  // The last one first: only that can tell that there is no such event.
  const rows = await rowsThrough(segment, last, eventId);
  if (rows === null) return null;
  for (let number = 0; number <= last; number++) {
    const columns = await segment.readColumns(number, STREAM_COLUMNS);
    countRows(columns, number < last ? segment.rowGroups[number]!.rows : rows, (...events) => {
      counter.add(...events);
    });
  }
  return counter.list();
}

/** Number of rows of a row group up to an event; null when that is not among them. */
async function rowsThrough(
  segment: Segment,
  number: number,
  eventId: string,
): Promise<number | null> {
  const { event_id } = await segment.readColumns(number, ["event_id"]);
  let low = 0;
  let high = segment.rowGroups[number]!.rows;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (uuidAt(event_id, middle) < eventId) low = middle + 1;
    else high = middle;
  }
  const isThere = low < segment.rowGroups[number]!.rows && uuidAt(event_id, low) === eventId;
  return isThere ? low + 1 : null;
}
