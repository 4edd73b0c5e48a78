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
    return new SegmentLines(this, this.#caches.rowGroups, wanted);
  }

  /** Whether no event here passes a filter, as far as the Bloom filters in memory show. */
  isPruned({ stream, recordKey }: EventFilter): boolean {
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

class SegmentLines implements LineSource {
  readonly #segment: SealedSegment;
  readonly #rowGroups: RowGroupCache;
  readonly #wanted: LinesWanted;
  /** Row groups not read yet, the next one last; null before the first read. */
  #numbers: number[] | null = null;
  /** Bytes of the next row group already returned; null before its first chunk. */
  #handedBytes: number | null = null;

  constructor(segment: SealedSegment, rowGroups: RowGroupCache, wanted: LinesWanted) {
    this.#segment = segment;
    this.#rowGroups = rowGroups;
    this.#wanted = wanted;
  }

  async next(): Promise<Buffer | null> {
    if (this.#numbers === null && this.#segment.isPruned(this.#wanted.filter)) return null;
    return await this.#segment.use(async (segment) => {
      this.#numbers ??= await this.#choose(segment);
      for (;;) {
        const number = this.#numbers.at(-1);
        if (number === undefined) return null;
        if (await this.#isWanted(segment, number)) return await this.#nextOf(segment, number);
        this.#numbers.pop();
      }
    });
  }

  /** The row groups to read, the first one last. */
  async #choose(segment: Segment): Promise<number[]> {
    const { after, filter } = this.#wanted;
    const { rowGroups } = segment;
    const isLater = ({ lastEventId }: { lastEventId: string }) =>
      after === undefined || lastEventId > after;
    const first = rowGroups.findIndex(isLater);
    if (first < 0) return [];
    return (await segment.prunedRowGroups(filter, first)).reverse();
  }

  /**
   * Whether to read a row group. In a large log a key passes ten Bloom filters by mistake, and
   * checking the key column costs a tenth of decoding the row group.
   */
  async #isWanted(segment: Segment, number: number): Promise<boolean> {
    const { recordKey } = this.#wanted.filter;
    return recordKey === undefined || this.#handedBytes !== null ||
      this.#rowGroups.has(segment, number) || await segment.hasRecordKey(number, recordKey);
  }

  /** The next chunk of a row group: a copy, because cached lines are shared. */
  #nextOf(segment: Segment, number: number): Promise<Buffer> {
    const { after } = this.#wanted;
    return this.#rowGroups.read(segment, number, (lines) => {
      const start = this.#handedBytes ?? (after === undefined ? 0 : firstLineAfter(lines, after));
      const end = chunkEnd(lines, start);
      this.#handedBytes = end;
      if (end === lines.length) {
        this.#numbers!.pop();
        this.#handedBytes = null;
      }
      const chunk = this.#wanted.memory.take(end - start);
      chunk.set(lines.subarray(start, end));
      return chunk;
    });
  }
}

/** Returns the end of the chunk that starts at `start`: whole lines, at least one. */
function chunkEnd(lines: Buffer, start: number): number {
  if (lines.length - start <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, start + READ_CHUNK_BYTES - 1) + 1;
  return end > start ? end : lines.indexOf(LF, start) + 1;
}
