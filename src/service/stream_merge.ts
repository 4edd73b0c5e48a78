/**
 * Pages of streams from several places at once: each gives its streams in order, and what they
 * count of one stream is added up. Reads no more of a place than the page shows.
 */
import type { StreamSummary } from "../event/types.ts";
import { STREAM_SEEKS_MAX } from "../limits.ts";
import {
  cursorOver,
  type ListCursor,
  type PackedId,
  streamKey,
  unpackedId,
} from "../log/segment/segment_list.ts";
import type { FileStreams } from "../log/read/snapshot.ts";
import type { StreamCounts } from "../log/segment/stream_counts.ts";

export interface StreamPlaces {
  /** Segments that count as a whole. */
  sealed: readonly FileStreams[];
  /** What was counted of events that are not in those. */
  counts: readonly StreamCounts[];
}

export interface RowsWanted {
  /** Exclusive. */
  afterKey: string;
  source: string | undefined;
  limit: number;
}

/** At most `limit` streams, in order of source, then stream. */
export async function mergeStreams(
  { sealed, counts }: StreamPlaces,
  { afterKey, source, limit }: RowsWanted,
): Promise<StreamSummary[]> {
  const prefix = source === undefined ? "" : streamKey(source, "");
  const cursors = counts.map((counted) =>
    cursorOver(counted.rows(afterKey, source, limit).map(entryOf))
  );
  const start = afterKey < prefix ? prefix : afterKey;
  for (let place = 0; place < sealed.length; place += STREAM_SEEKS_MAX) {
    const streams = sealed.slice(place, place + STREAM_SEEKS_MAX);
    cursors.push(...await Promise.all(streams.map((file) => file.seek(start))));
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

function entryOf({ source, stream, frontier_event_id, event_count }: StreamSummary) {
  return {
    key: streamKey(source, stream),
    lastEventId: frontier_event_id,
    events: event_count,
  };
}

function leastKey(cursors: readonly ListCursor[]): string | null {
  let least: string | null = null;
  for (const { key } of cursors) {
    if (key !== null && (least === null || key < least)) least = key;
  }
  return least;
}

/** Adds up what all have of a stream, and has them go on. */
async function takeStream(cursors: readonly ListCursor[], key: string): Promise<StreamSummary> {
  const [source, stream] = key.split(" ") as [string, string];
  let frontier: PackedId = "";
  let events = 0;
  for (const cursor of cursors) {
    if (cursor.key !== key) continue;
    const { lastId } = cursor;
    events += cursor.events;
    if (frontier < lastId) frontier = lastId;
    if (!cursor.skip()) await cursor.nextBlock();
  }
  return { source, stream, frontier_event_id: unpackedId(frontier), event_count: events };
}
