/** The streams of a segment: from its stream index, or counted up to an event from its rows. */
import { type ColumnValues, textAt, uuidAt } from "../parquet/column_values.ts";
import type { FileStreams } from "../read/snapshot.ts";
import { StreamCounts, type StreamCursor, streamKey } from "../read/stream_counts.ts";
import type { ReadableSegment } from "./listed_segment.ts";
import type { Segment } from "./segment_reader.ts";
import { seekStream } from "./stream_index_reader.ts";

/** The columns that tell the stream of an event. */
const STREAM_COLUMNS = ["event_id", "source", "stream"] as const;
type StreamColumns = Record<typeof STREAM_COLUMNS[number], ColumnValues>;

export class SegmentStreams implements FileStreams {
  readonly #segment: ReadableSegment;

  constructor(segment: ReadableSegment) {
    this.#segment = segment;
  }

  seek(key: string): Promise<StreamCursor> {
    return seekStream(this.#segment.streams, key);
  }

  countThrough(eventId: string): Promise<StreamCounts | null> {
    return this.#segment.use((segment) => countThrough(segment, eventId));
  }
}

/** Takes in events of one stream, the last of which has that id. */
type AddEvents = (key: string, events: number, lastEventId: string) => void;

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
    const key = streamKey(textAt(source, lastRow), textAt(stream, lastRow));
    add(key, events, uuidAt(event_id, lastRow));
  }
}

/** Names that are in the dictionary twice, or in none, must still be told in log order. */
function byLastRow<Item extends { lastRow: number }>(items: Iterable<Item>): Item[] {
  return [...items].sort((a, b) => a.lastRow - b.lastRow);
}

/**
 * The streams of a segment's events up to one; null when it does not hold that event. Reads the row
 * groups up to that of the event. @throws {SegmentError}
 */
export async function countThrough(
  segment: Segment,
  eventId: string,
): Promise<StreamCounts | null> {
  const last = segment.rowGroups.findIndex((group) => group.lastEventId >= eventId);
  if (last < 0) return null;
  const counts = new StreamCounts();
  for (let number = 0; number <= last; number++) {
    const columns = await segment.readColumns(number, STREAM_COLUMNS);
    const rows = number < last
      ? segment.rowGroups[number]!.rows
      : rowsThrough(columns.event_id, eventId);
    if (rows === null) return null;
    countRows(columns, rows, (...events) => counts.add(...events));
  }
  return counts;
}

/** Number of rows up to that of an event; null when it is not among them. */
function rowsThrough(ids: ColumnValues, eventId: string): number | null {
  let low = 0;
  let high = ids.starts.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (uuidAt(ids, middle) < eventId) low = middle + 1;
    else high = middle;
  }
  return low < ids.starts.length && uuidAt(ids, low) === eventId ? low + 1 : null;
}
