/**
 * Pages of streams from several places at once: each gives its streams in order, and what they
 * count of one stream is added up. Reads no more of a place than the page shows.
 */
import type { StreamSummary } from "../event/types.ts";
import { STREAM_SEEKS_MAX } from "../limits.ts";
import { streamKey } from "../log/segment/stream_index.ts";
import type { StreamCursor } from "../log/segment/stream_index_reader.ts";
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
  const start = afterKey < prefix ? prefix : afterKey;
  // In log order, so that the last one with a stream has its last event.
  const cursors: Cursor[] = [];
  for (let place = 0; place < sealed.length; place += STREAM_SEEKS_MAX) {
    const streams = sealed.slice(place, place + STREAM_SEEKS_MAX);
    cursors.push(...await Promise.all(streams.map((file) => file.seek(start))));
  }
  cursors.push(...counts.map((counted) => new RowCursor(counted.rows(afterKey, source, limit))));
  const rows: StreamSummary[] = [];
  while (rows.length < limit) {
    const key = leastKey(cursors);
    if (key === null || !key.startsWith(prefix)) break;
    const row = await takeStream(cursors, key);
    if (key !== afterKey) rows.push(row);
  }
  return rows;
}

type Cursor = Pick<StreamCursor, "key" | "events" | "lastEventId" | "next" | "nextBlock">;

/** Goes over rows that are in memory. */
class RowCursor implements Cursor {
  readonly #rows: readonly StreamSummary[];
  #place = 0;

  constructor(rows: readonly StreamSummary[]) {
    this.#rows = rows;
  }

  get key(): string | null {
    const row = this.#rows[this.#place];
    return row === undefined ? null : streamKey(row.source, row.stream);
  }

  get events(): number {
    return this.#rows[this.#place]!.event_count;
  }

  get lastEventId(): string {
    return this.#rows[this.#place]!.frontier_event_id;
  }

  next(): boolean {
    this.#place += 1;
    return true;
  }

  nextBlock(): Promise<void> {
    return Promise.resolve();
  }
}

function leastKey(cursors: readonly Cursor[]): string | null {
  let least: string | null = null;
  for (const { key } of cursors) {
    if (key !== null && (least === null || key < least)) least = key;
  }
  return least;
}

/** Adds up what all have of a stream, and has them go on. */
async function takeStream(cursors: readonly Cursor[], key: string): Promise<StreamSummary> {
  const [source, stream] = key.split(" ") as [string, string];
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
