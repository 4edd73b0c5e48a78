/**
 * Enumerates streams in pages that all describe one snapshot: the first page names the event it was
 * taken at, the others ask for that one. Recent snapshots are kept; any other is counted from the
 * log again.
 */
import { ApiError } from "../event/api_error.ts";
import type { StreamSummary } from "../event/types.ts";
import { STREAM_SNAPSHOTS_MAX } from "../limits.ts";
import { hasEvent } from "../log/event_walk.ts";
import type { LogSnapshot } from "../log/snapshot.ts";
import { type StreamCounts, streamKey } from "./stream_counts.ts";
import { countStreams, type StreamsAt, type StreamTable } from "./stream_table.ts";

export interface StreamsQuery {
  source: string | undefined;
  /** Exclusive cursor. */
  after: { source: string; stream: string } | undefined;
  /** The event at which to count; the latest when undefined. */
  through: string | undefined;
  limit: number;
}

/** One page, as on the wire. */
export interface StreamsPage {
  v: 1;
  streams: StreamSummary[];
  /** `source/stream` cursor of the next page; null at the end. */
  next_after: string | null;
  snapshot_through_event_id: string | null;
}

export class StreamPages {
  readonly #snapshot: () => LogSnapshot;
  readonly #table: StreamTable;
  /** By the event they were taken at, from least to most recently used. */
  readonly #kept = new Map<string, Promise<StreamCounts>>();

  constructor(snapshot: () => LogSnapshot, table: StreamTable) {
    this.#snapshot = snapshot;
    this.#table = table;
  }

  /** @throws {ApiError} `stream_anchor_unavailable` when `through` is no committed event. */
  async page({ source, after, through, limit }: StreamsQuery): Promise<StreamsPage> {
    const at = await this.#streamsAt(through);
    const afterKey = after === undefined ? "" : streamKey(after.source, after.stream);
    const rows = at.counts.rows(afterKey, source, limit + 1);
    const streams = rows.slice(0, limit);
    const more = rows.length > limit;
    if (more && at.throughEventId !== null && !this.#kept.has(at.throughEventId)) {
      this.#keep(at.throughEventId, Promise.resolve(at.counts.copy()));
    }
    const last = streams.at(-1);
    return {
      v: 1,
      streams,
      next_after: more ? `${last!.source}/${last!.stream}` : null,
      snapshot_through_event_id: at.throughEventId,
    };
  }

  async #streamsAt(through: string | undefined): Promise<StreamsAt> {
    if (through === undefined) return await this.#table.live();
    let counts = this.#kept.get(through);
    if (counts === undefined) {
      counts = this.#countThrough(through);
      counts.catch(() => this.#kept.delete(through));
    }
    this.#keep(through, counts);
    return { counts: await counts, throughEventId: through };
  }

  async #countThrough(through: string): Promise<StreamCounts> {
    const snapshot = this.#snapshot();
    if (!(await hasEvent(snapshot, through))) {
      throw new ApiError(
        "stream_anchor_unavailable",
        `through is not a committed event: ${through}; start again without after and through`,
      );
    }
    return await countStreams(snapshot, through);
  }

  #keep(through: string, counts: Promise<StreamCounts>): void {
    this.#kept.delete(through);
    this.#kept.set(through, counts);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= STREAM_SNAPSHOTS_MAX) break;
      this.#kept.delete(oldest);
    }
  }
}
