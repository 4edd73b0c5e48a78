/**
 * Enumerates streams in pages that all describe one snapshot: the first page names the event it was
 * taken at, the others ask for that one. What segments before that event have is read page by page;
 * what follows them up to the event is counted, and the latest counts are kept.
 */
import { ApiError } from "../event/api_error.ts";
import type { StreamSummary } from "../event/types.ts";
import { hasEvent } from "../log/read/event_walk.ts";
import { streamKey } from "../log/segment/stream_index.ts";
import type { LogFile, LogSnapshot } from "../log/read/snapshot.ts";
import { StreamCounts } from "../log/segment/stream_counts.ts";
import { mergeStreams } from "./stream_merge.ts";
import { countEvents, type StreamsAt, type StreamTable, unsealedFiles } from "./stream_table.ts";

/**
 * What all but the latest of them take together: one of a hundred thousand streams that are not
 * sealed, or in one segment.
 */
const STREAM_SNAPSHOTS_BYTES_MAX = 4 * 1024 * 1024;

/** Anchored stream listings kept in memory at a time; others are counted from the log again. */
export const STREAM_SNAPSHOTS_MAX: number = 4;

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

interface KeptStreams {
  streams: Promise<StreamsAt>;
  /** What their counts take; 0 while they are being counted. */
  bytes: number;
}

export class StreamPages {
  readonly #snapshot: () => LogSnapshot;
  readonly #table: StreamTable;
  /** By the event they were taken at, from least to most recently used. */
  readonly #kept = new Map<string, KeptStreams>();
  /** Ends when nothing is being counted: one counting at a time bounds what they take. */
  #counting: Promise<void> = Promise.resolve();

  constructor(snapshot: () => LogSnapshot, table: StreamTable) {
    this.#snapshot = snapshot;
    this.#table = table;
  }

  /** @throws {ApiError} `stream_anchor_unavailable` when `through` is no committed event. */
  async page({ source, after, through, limit }: StreamsQuery): Promise<StreamsPage> {
    const at = await (through === undefined ? this.#table.live() : this.#streamsAt(through));
    const afterKey = after === undefined ? "" : streamKey(after.source, after.stream);
    const rows = await mergeStreams(at, { afterKey, source, limit: limit + 1 });
    const streams = rows.slice(0, limit);
    const more = rows.length > limit;
    if (more && at.throughEventId !== null && !this.#kept.has(at.throughEventId)) {
      this.#keep(at.throughEventId, { streams: Promise.resolve(at), bytes: sizeOf(at) });
    }
    const last = streams.at(-1);
    return {
      v: 1,
      streams,
      next_after: more ? `${last!.source}/${last!.stream}` : null,
      snapshot_through_event_id: at.throughEventId,
    };
  }

  async #streamsAt(through: string): Promise<StreamsAt> {
    const kept = this.#kept.get(through) ?? this.#count(through);
    this.#keep(through, kept);
    const at = await kept.streams;
    if (kept.bytes === 0) {
      kept.bytes = sizeOf(at);
      this.#dropOldest();
    }
    return at;
  }

  /** Counts once nobody else does. */
  #count(through: string): KeptStreams {
    const streams = this.#counting.then(() => this.#countThrough(through));
    this.#counting = streams.then(() => {}, () => void this.#kept.delete(through));
    return { streams, bytes: 0 };
  }

  async #countThrough(through: string): Promise<StreamsAt> {
    const snapshot = this.#snapshot();
    const { files } = snapshot;
    const place = files.findIndex(({ lastEventId }) => through <= lastEventId);
    const file = files[place];
    if (file === undefined) throw anchorUnavailable(through);
    const counts = file.streams === null
      ? await countUnsealed(unsealedFiles(snapshot), through)
      : await countSegment(file, through);
    if (counts === null) throw anchorUnavailable(through);
    const isWhole = counts.size === 0;
    const before = files.slice(0, isWhole ? place + 1 : place);
    const sealed = before.map(({ streams }) => streams).filter((streams) => streams !== null);
    return { sealed, counts: [counts], throughEventId: through };
  }

  #keep(through: string, kept: KeptStreams): void {
    this.#kept.delete(through);
    this.#kept.set(through, kept);
    this.#dropOldest();
  }

  /** The latest stay, whatever they take. */
  #dropOldest(): void {
    let bytes = [...this.#kept.values()].reduce((sum, kept) => sum + kept.bytes, 0);
    for (const [through, oldest] of this.#kept) {
      const isWithin = this.#kept.size <= STREAM_SNAPSHOTS_MAX &&
        bytes <= STREAM_SNAPSHOTS_BYTES_MAX;
      if (isWithin || this.#kept.size === 1) return;
      this.#kept.delete(through);
      bytes -= oldest.bytes;
    }
  }
}

function sizeOf({ counts }: StreamsAt): number {
  return counts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}

/** Counts a segment up to an event; nothing where that is its last. Null when it has none such. */
async function countSegment(
  { lastEventId, streams }: LogFile,
  through: string,
): Promise<StreamCounts | null> {
  return lastEventId === through ? new StreamCounts() : await streams!.countThrough(through);
}

/** Counts unsealed files up to an event; null when they do not hold it. */
async function countUnsealed(
  files: readonly LogFile[],
  through: string,
): Promise<StreamCounts | null> {
  const frontier = files.at(-1)!.lastEventId;
  return await hasEvent({ files, frontier }, through) ? await countEvents(files, through) : null;
}

function anchorUnavailable(through: string): ApiError {
  return new ApiError(
    "stream_anchor_unavailable",
    `through is not a committed event: ${through}; start again without after and through`,
  );
}
