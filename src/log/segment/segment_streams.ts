/** The streams of rows, counted from the few columns that tell them. */
import { type ColumnValues, textAt, uuidAt } from "../parquet/column_values.ts";
import type { Segment } from "./segment_reader.ts";
import { type NameBytes, StreamCounts } from "./stream_counts.ts";

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
 * The streams of a segment's events up to one; null when it does not hold that event. Reads the row
 * groups up to that of the event. @throws {SegmentError}
 */
export async function countThrough(
  segment: Segment,
  eventId: string,
): Promise<StreamCounts | null> {
  const last = segment.rowGroups.findIndex((group) => group.lastEventId >= eventId);
  if (last < 0) return null;
  let rows = await rowsThrough(segment, last, eventId);
  if (rows === null) return null;
  const counts = new StreamCounts();
  // From newest to oldest: an event is the last of its stream when the stream is new.
  for (let number = last; number >= 0; number--) {
    rows ??= segment.rowGroups[number]!.rows;
    await countEarlier(segment, number, rows, counts);
    rows = null;
  }
  return counts;
}

/** Takes in the first `rows` rows of a row group. */
async function countEarlier(
  segment: Segment,
  number: number,
  rows: number,
  counts: StreamCounts,
): Promise<void> {
  const names = await segment.readColumns(number, ["source", "stream"]);
  const lastRows = addEarlier(names, rows, counts);
  if (lastRows.length === 0) return;
  const { event_id } = await segment.readColumns(number, ["event_id"]);
  for (const [stream, row] of lastRows) {
    counts.setLastEvent(stream, event_id.bytes, event_id.starts[row]!);
  }
}

/** @returns the numbers of the streams that are new, and the row of the last event of each. */
function addEarlier(
  { source, stream }: Pick<StreamColumns, "source" | "stream">,
  rows: number,
  counts: StreamCounts,
): [number, number][] {
  const lastRows: [number, number][] = [];
  for (let row = rows - 1; row >= 0;) {
    const lastRow = row;
    const sourceStart = source.starts[row];
    const streamStart = stream.starts[row];
    do row -= 1; while (
      row >= 0 && stream.starts[row] === streamStart && source.starts[row] === sourceStart
    );
    const added = counts.addEarlier(
      nameAt(source, lastRow),
      nameAt(stream, lastRow),
      lastRow - row,
    );
    if (added !== null) lastRows.push([added, lastRow]);
  }
  return lastRows;
}

function nameAt({ bytes, starts, ends }: ColumnValues, row: number): NameBytes {
  return { bytes, start: starts[row]!, end: ends[row]! };
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
