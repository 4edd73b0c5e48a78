/**
 * Lists streams in pages that all describe one snapshot: the first page names its last event, the
 * others are requested with that event. Sealed counts are read page by page; unsealed ones up to
 * the event are counted, and the latest counts are cached.
 */
import { ApiError } from "../event/api_error.ts";
import type { StreamSummary } from "../event/types.ts";
import { hasEvent } from "../log/read/event_walk.ts";
import type { LogSnapshot } from "../log/read/snapshot.ts";
import { type StreamCounts, streamKey } from "../log/read/stream_counts.ts";
import { LruCache } from "../lru_cache.ts";
import { countEvents } from "./generation.ts";
import { type LogState, sealedStreams, type StreamsAt, unsealedFiles } from "./log_state.ts";
import { mergeStreams } from "./stream_merge.ts";

/** Anchored stream listings in the cache; others are counted from the log again. */
export const STREAM_SNAPSHOTS_MAX: number = 4;

/** Size up to which a listing counts as one of those: 25,000 unsealed streams. */
const STREAM_SNAPSHOT_BYTES = 4 * 1024 * 1024;

export interface StreamsQuery {
  source: string | undefined;
  /** Exclusive cursor. */
  after: { source: string; stream: string } | undefined;
  /** The event at which to count; the frontier when undefined. */
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
  readonly #state: LogState;
  /** By their last event. Every one weighs at least its share of the limit. */
  readonly #kept = new LruCache<StreamsAt>(
    STREAM_SNAPSHOTS_MAX * STREAM_SNAPSHOT_BYTES,
    ({ sizeBytes }) => Math.max(sizeBytes, STREAM_SNAPSHOT_BYTES),
  );
  /** The last count. They run one at a time, which bounds their memory. */
  #counting: Promise<unknown> = Promise.resolve();

  constructor(state: LogState) {
    this.#state = state;
  }

  /** @throws {ApiError} `stream_anchor_unavailable` when `through` is no committed event. */
  async page({ source, after, through, limit }: StreamsQuery): Promise<StreamsPage> {
    const at = through === undefined
      ? await this.#state.streams()
      : await this.#kept.load(through, () => this.#count(through));
    const afterKey = after === undefined ? "" : streamKey(after.source, after.stream);
    const rows = await mergeStreams(at.sources, { afterKey, source, limit: limit + 1 });
    const streams = rows.slice(0, limit);
    const more = rows.length > limit;
    if (more && at.throughEventId !== null) this.#kept.set(at.throughEventId, at);
    const last = streams.at(-1);
    return {
      v: 1,
      streams,
      next_after: more ? `${last!.source}/${last!.stream}` : null,
      snapshot_through_event_id: at.throughEventId,
    };
  }

  #count(through: string): Promise<StreamsAt> {
    const counted = this.#counting.then(() => this.#countThrough(through));
    this.#counting = counted.catch(() => {});
    return counted;
  }

  async #countThrough(through: string): Promise<StreamsAt> {
    const snapshot = this.#state.snapshot();
    const { files } = snapshot;
    const place = files.findIndex(({ lastEventId }) => through <= lastEventId);
    const file = files[place];
    if (file === undefined) throw anchorUnavailable(through);
    if (file.streams !== null && file.lastEventId === through) {
      const sources = sealedStreams(files.slice(0, place + 1));
      return { sources, sizeBytes: 0, throughEventId: through };
    }
    const counts = file.streams === null
      ? await countUnsealed(snapshot, through)
      : await file.streams.countThrough(through);
    if (counts === null) throw anchorUnavailable(through);
    return {
      sources: [...sealedStreams(files.slice(0, place)), counts],
      sizeBytes: counts.sizeBytes,
      throughEventId: through,
    };
  }
}

/** Counts unsealed files up to an event; null when it is not in them. */
async function countUnsealed(snapshot: LogSnapshot, through: string): Promise<StreamCounts | null> {
  const files = unsealedFiles(snapshot);
  return await hasEvent(files, through) ? await countEvents(files, through) : null;
}

function anchorUnavailable(through: string): ApiError {
  return new ApiError(
    "stream_anchor_unavailable",
    `through is not a committed event: ${through}; start again without after and through`,
  );
}
