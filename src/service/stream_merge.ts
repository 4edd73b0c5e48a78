/**
 * Merges the sorted streams of several parts of the log into pages, adding up the counts of each
 * stream. Reads no more of a part than the page shows.
 */
import type { StreamSummary } from "../event/types.ts";
import {
  namesOf,
  type StreamCursor,
  streamKey,
  type StreamSource,
} from "../log/read/stream_counts.ts";

/** Parts of the log in which a page is sought concurrently. */
const STREAM_SEEKS_MAX = 32;

export interface RowsWanted {
  /** Exclusive. */
  afterKey: string;
  source: string | undefined;
  limit: number;
}

/**
 * At most `limit` streams, in order of source, then stream.
 * @param sources from oldest to newest part of the log.
 */
export async function mergeStreams(
  sources: readonly StreamSource[],
  { afterKey, source, limit }: RowsWanted,
): Promise<StreamSummary[]> {
  const prefix = source === undefined ? "" : streamKey(source, "");
  const start = afterKey < prefix ? prefix : afterKey;
  const cursors: StreamCursor[] = [];
  for (let place = 0; place < sources.length; place += STREAM_SEEKS_MAX) {
    const some = sources.slice(place, place + STREAM_SEEKS_MAX);
    const seeks = some.map((streams) => streams.seek(start));
    // A failure waits for the others: nobody reads a segment once the page has failed.
    await Promise.allSettled(seeks);
    cursors.push(...await Promise.all(seeks));
  }
  const rows: StreamSummary[] = [];
  while (rows.length < limit) {
    const key = leastKey(cursors);
    if (key === null || !key.startsWith(prefix)) break;
    const row = await takeStream(cursors, key);
    if (key !== afterKey) rows.push(row);
  }
  return rows;
}

function leastKey(cursors: readonly StreamCursor[]): string | null {
  let least: string | null = null;
  for (const { key } of cursors) {
    if (key !== null && (least === null || key < least)) least = key;
  }
  return least;
}

/** Adds up the counts of a stream and advances its cursors. The newest part has its last event. */
async function takeStream(cursors: readonly StreamCursor[], key: string): Promise<StreamSummary> {
  const [source, stream] = namesOf(key);
  let frontier = "";
  let events = 0;
  for (const cursor of cursors) {
    if (cursor.key !== key) continue;
    events += cursor.events;
    frontier = cursor.lastEventId;
    if (!cursor.next()) await cursor.nextBlock();
  }
  return { source, stream, frontier_event_id: frontier, event_count: events };
}
