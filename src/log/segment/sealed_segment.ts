/**
 * A segment of the log, open or not: what the manifest says of it, and how a snapshot reads it. A
 * reader gets the lines of the row groups that may hold what its filter selects.
 */
import type { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import type { LruCache } from "../../lru_cache.ts";
import { type EventFilter, firstLineAfter } from "../line/stored_line.ts";
import type { FileStreams, LineSource, LinesWanted, LogFile } from "../read/snapshot.ts";
import type { SegmentEntry } from "./manifest.ts";
import type { RowGroupCache } from "./row_group_cache.ts";
import { pruneRowGroups } from "./row_group_pruning.ts";
import type { Segment } from "./segment_reader.ts";
import { countThrough } from "./segment_streams.ts";
import {
  seekStream,
  type StreamBlock,
  type StreamIndex,
  type StreamIndexBlock,
} from "./stream_index.ts";
import type { TableCache } from "./table_cache.ts";

const LF = 0x0a;

/** Blocks of stream indexes in memory, those of all segments of a log. */
export type StreamBlockCache = LruCache<StreamBlock | StreamIndexBlock>;

/** What the segments of a log share. */
export interface SegmentCaches {
  tables: TableCache;
  streamBlocks: StreamBlockCache;
  rowGroups: RowGroupCache;
}

export class SealedSegment implements LogFile {
  readonly path: string;
  readonly lastEventId: string;
  readonly streams: FileStreams;
  /** Its stream index, read by blocks. */
  readonly streamIndex: StreamIndex;
  readonly #entry: SegmentEntry;
  readonly #caches: SegmentCaches;

  constructor(entry: SegmentEntry, caches: SegmentCaches) {
    this.path = entry.path;
    this.lastEventId = entry.last_event_id;
    this.#entry = entry;
    this.#caches = caches;
    const { streamBlocks } = caches;
    this.streamIndex = {
      index: async () => {
        const load = () => this.use((segment) => segment.readStreamIndex());
        return await streamBlocks.load(entry.path, load) as StreamIndexBlock;
      },
      block: async (place) => {
        const load = () => this.use((segment) => segment.readStreamBlock(place));
        return await streamBlocks.load(`${entry.path} ${place.offset}`, load) as StreamBlock;
      },
    };
    this.streams = {
      seek: (key) => seekStream(this.streamIndex, key),
      countThrough: (eventId) => this.use((segment) => countThrough(segment, eventId)),
    };
  }

  lines(wanted: LinesWanted): LineSource {
    let segment: Segment;
    const chunks = readChunks(() => segment, this.#caches.rowGroups, wanted);
    let isPruned: boolean | null = null;
    const next = async (): Promise<Buffer | null> => {
      isPruned ??= this.#isPruned(wanted.filter);
      if (isPruned) return null;
      // The segment is open for one call at a time.
      return await this.use(async (opened) => {
        segment = opened;
        return (await chunks.next()).value ?? null;
      });
    };
    return { next };
  }

  /** Whether no event here passes a filter, as far as the Bloom filters in memory show. */
  #isPruned({ stream, recordKey }: EventFilter): boolean {
    const { tables } = this.#caches;
    return tables.lacks(this.#entry, "record_key", recordKey) ||
      tables.lacks(this.#entry, "stream", stream);
  }

  /**
   * Runs `read` over the segment, which stays open meanwhile.
   * @throws {CorruptLogError} the file is missing, is no segment, or not the one of the manifest.
   */
  use<Result>(read: (segment: Segment) => Result | Promise<Result>): Promise<Result> {
    return this.#caches.tables.use(this.#entry, read);
  }
}

/**
 * Reads chunks of whole lines: copies, because cached lines are shared. `opened` gives the segment,
 * which a cache may close and reopen between two chunks.
 */
async function* readChunks(
  opened: () => Segment,
  rowGroups: RowGroupCache,
  wanted: LinesWanted,
): AsyncGenerator<Buffer, void> {
  const { after, filter: { recordKey }, memory } = wanted;
  for (const number of await wantedRowGroups(opened(), wanted)) {
    // In a large log ten Bloom filters give a false positive, and checking the key column costs a
    // tenth of decoding the row group.
    const mayHold = recordKey === undefined || rowGroups.has(opened(), number) ||
      await opened().hasRecordKey(number, recordKey);
    if (!mayHold) continue;
    let end = 0;
    let sizeBytes = Infinity;
    while (end < sizeBytes) {
      yield await rowGroups.read(opened(), number, (lines) => {
        const start = end === 0 && after !== undefined ? firstLineAfter(lines, after) : end;
        end = chunkEnd(lines, start);
        sizeBytes = lines.length;
        const chunk = memory.take(end - start);
        chunk.set(lines.subarray(start, end));
        return chunk;
      });
    }
  }
}

/** The row groups that may hold events after one that pass a filter. */
function wantedRowGroups(segment: Segment, { after, filter }: LinesWanted): Promise<number[]> {
  const first = segment.rowGroups.findIndex(({ lastEventId }) =>
    after === undefined || lastEventId > after
  );
  return first < 0 ? Promise.resolve([]) : pruneRowGroups(segment, filter, first);
}

/** Returns the end of the chunk that starts at `start`: whole lines, at least one. */
function chunkEnd(lines: Buffer, start: number): number {
  if (lines.length - start <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, start + READ_CHUNK_BYTES - 1) + 1;
  return end > start ? end : lines.indexOf(LF, start) + 1;
}
