/**
 * Lists streams in pages from one snapshot: the first page returns the snapshot's last event, and
 * later requests pass it back. A page merges the sorted streams from all parts of the log. In the
 * part that contains that last event, events are counted up to it. The latest counts are cached.
 */
import { ApiError } from "../event/api_error.ts";
import type { StreamSummary } from "../event/types.ts";
import type { LogFiles } from "../log/sealing/log_files.ts";
import { lineEventId, lineMembers } from "../log/line/stored_line.ts";
import { isSourceKey } from "../log/index/stream_blocks.ts";
import {
  mergedStreams,
  namesOf,
  StreamCounts,
  streamKey,
  type StreamSource,
} from "../log/read/stream_counts.ts";
import { type LogFile, walkEvents } from "../log/read/snapshot.ts";
import { ScanTurn } from "../log/read/scan_turn.ts";
import type { CommitFile } from "../log/wal/commit_file.ts";
import { fileView } from "../log/wal/commit_file_view.ts";
import { LruCache } from "../lru_cache.ts";

/** Maximum cached listings as of an earlier event. Any other listing is recounted from the log. */
const STREAM_SNAPSHOTS_MAX: number = 4;

/** Minimum weight of a cached listing: 25,000 unsealed streams. */
const STREAM_SNAPSHOT_BYTES = 4 * 1024 * 1024;

export interface StreamsQuery {
  source: string | undefined;
  /** The stream after which the page starts. */
  after: { source: string; stream: string } | undefined;
  /** The event up to which to count; undefined for the frontier. */
  through: string | undefined;
  limit: number;
}

/** A page in its wire format. */
export interface StreamsPage {
  v: 1;
  streams: StreamSummary[];
  /** `source/stream` cursor for the next page; null at the end. */
  next_after: string | null;
  snapshot_through_event_id: string | null;
}

/** The streams in a part of the log, which may be split once it has been sealed. */
type PartStreams = () => readonly StreamSource[];

/** The streams as of an event. Later commits do not change them. */
interface StreamsAt {
  /** Parts of the log, from oldest to newest. */
  parts: readonly PartStreams[];
  /** Memory that the last part may retain after it has been sealed. */
  sizeBytes: number;
  /** Last event counted; null for an empty log. */
  throughEventId: string | null;
}

export class StreamPages {
  readonly #files: LogFiles;
  /** Cached listings, keyed by last event. */
  readonly #kept = new LruCache<StreamsAt>(
    STREAM_SNAPSHOTS_MAX * STREAM_SNAPSHOT_BYTES,
    ({ sizeBytes }) => Math.max(sizeBytes, STREAM_SNAPSHOT_BYTES),
  );
  /** The latest count. Counts run one after another, which bounds their memory. */
  #counting: Promise<unknown> = Promise.resolve();

  constructor(files: LogFiles) {
    this.#files = files;
  }

  /** @throws {ApiError} `stream_anchor_unavailable` if `through` is not a committed event. */
  async page(query: StreamsQuery): Promise<StreamsPage> {
    const { through, limit } = query;
    const at = through === undefined
      ? this.#atFrontier()
      : await this.#kept.load(through, () => this.#count(through));
    // A page takes milliseconds, as a turn of a scan does.
    await new ScanTurn().next();
    const sources = at.parts.flatMap((streams) => streams());
    const rows = await mergeStreams(sources, { ...query, limit: limit + 1 });
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

  #atFrontier(): StreamsAt {
    const { sealed, unsealed } = this.#files;
    const files = unsealed.filter(({ lastEventId }) => lastEventId !== null);
    const last = files.pop();
    const throughEventId = last?.lastEventId ?? sealed.lastEventId;
    return streamsAt(sealed.streamSources(), files, last?.batches.streams, throughEventId);
  }

  #count(through: string): Promise<StreamsAt> {
    const counted = this.#counting.then(() => this.#countThrough(through));
    this.#counting = counted.catch(() => {});
    return counted;
  }

  /** Counts up to `through` in the file that contains it. Earlier files have stored counts. */
  async #countThrough(through: string): Promise<StreamsAt> {
    const { sealed, unsealed } = this.#files;
    const split = sealed.streamsThrough(through);
    const sources = split?.before ?? sealed.streamSources();
    const files = split === null ? unsealed : [];
    const place = files.findIndex(({ lastEventId }) => through <= (lastEventId ?? ""));
    const file = split?.file ?? (place < 0 ? null : fileView(files[place]!));
    const counts = file && await countIn(file, through);
    if (counts === null) {
      const message = `through is not the id of a committed event: ${through}`;
      const advice = "list again without after and through";
      throw new ApiError("stream_anchor_unavailable", `${message}; ${advice}`);
    }
    return streamsAt(sources, files.slice(0, place), counts, through);
  }
}

/** @param counts the streams in the file that contains the last event, up to that event. */
function streamsAt(
  sealed: readonly StreamSource[],
  pending: readonly CommitFile[],
  counts: StreamCounts | undefined,
  throughEventId: string | null,
): StreamsAt {
  const last = counts === undefined ? [] : [counts.snapshot()];
  const parts = [() => sealed, ...pending.map(wholeFile), () => last];
  return { parts, sizeBytes: counts?.sizeBytes ?? 0, throughEventId };
}

/** The streams in a pending file, read from its segments once it is sealed. */
function wholeFile(file: CommitFile): PartStreams {
  return () => file.sealedIn?.map(({ index }) => index) ?? [file.batches.streams.snapshot()];
}

/** Counts the events in a file up to `through`; null if the file does not contain that event. */
async function countIn(file: LogFile, through: string): Promise<StreamCounts | null> {
  const counts = new StreamCounts();
  let isFound = false;
  await walkEvents(file, (chunk, start) => {
    const eventId = lineEventId(chunk, start);
    if (eventId > through) return false;
    isFound = eventId === through;
    const [source, stream] = lineMembers(chunk, start);
    counts.add(source, stream, 1, eventId);
    return true;
  });
  return isFound ? counts : null;
}

/** Merges at most `limit` streams after `after`, ordered by source, then stream. */
async function mergeStreams(
  sources: readonly StreamSource[],
  { after, source, limit }: StreamsQuery,
): Promise<StreamSummary[]> {
  const afterKey = after === undefined ? "" : streamKey(after.source, after.stream);
  const prefix = source === undefined ? "" : streamKey(source, "");
  const start = afterKey < prefix ? prefix : afterKey;
  const rows: StreamSummary[] = [];
  for await (const entries of mergedStreams(sources, start)) {
    for (const { key, events, lastEventId } of entries) {
      if (!key.startsWith(prefix) || rows.length === limit) return rows;
      const [source, stream] = namesOf(key);
      if (key === afterKey || isSourceKey(key)) continue;
      rows.push({ source, stream, frontier_event_id: lastEventId, event_count: events });
    }
  }
  return rows;
}
