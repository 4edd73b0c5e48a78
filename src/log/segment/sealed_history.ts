/**
 * All segments of a log: finds batches and last events in them without reading their rows. Segments
 * are opened on first use, and what is kept of them in memory is bounded.
 */
import type { BatchEntry } from "../wal/commit_frame.ts";
import { batchKeyHash, mayHoldKey, streamKeyHash } from "./key_filter.ts";
import { LruCache } from "../../lru_cache.ts";
import type { SegmentEntry } from "./manifest.ts";
import { RowGroupCache } from "./row_group_cache.ts";
import { SealedSegment, type SegmentCaches } from "./sealed_segment.ts";
import { findBatch } from "./segment_batches.ts";
import { TableCache } from "./table_cache.ts";
import { findEntry, sourceKey } from "./stream_index.ts";
import { streamKey } from "../read/stream_counts.ts";
import type { Storage } from "../storage/storage.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";
import type { Segment } from "./segment_reader.ts";

/** Blocks of stream indexes kept in memory, those of all segments together. */
const STREAM_BLOCKS_BYTES_MAX = 16 * 1024 * 1024;
/** Last events of sealed sources and streams kept in memory: about 8 MiB. */
const FRONTIERS_CACHED_MAX = 32 * 1024;

/**
 * Key filters kept in memory: the keys of ten million batches of one event and of the streams in
 * each segment take 57 MiB. Other filters are read from their files, a page for each new batch.
 */
const KEY_FILTERS_BYTES_MAX = 60 * 1024 * 1024;

interface KnownFrontier {
  /** Null when no segment has it. */
  lastEventId: string | null;
  /** Number of segments, from the oldest on, that this covers. */
  segments: number;
}

export class SealedHistory {
  readonly #caches: SegmentCaches;
  /** From oldest to newest. */
  readonly #segments: SealedSegment[] = [];
  readonly #filters = new KeyFilters(this.#segments);
  /** By key of the stream indexes. */
  readonly #frontiers = new LruCache<KnownFrontier>(FRONTIERS_CACHED_MAX);
  #files: readonly SealedSegment[] = [];

  constructor(storage: Storage) {
    this.#caches = {
      tables: new TableCache(storage),
      streamBlocks: new LruCache(STREAM_BLOCKS_BYTES_MAX, (block) => block.sizeBytes),
      rowGroups: new RowGroupCache(),
    };
  }

  /** The segments for readers, from oldest to newest. `add()` replaces the list. */
  get files(): readonly SealedSegment[] {
    return this.#files;
  }

  /** Last event of the last segment; null when there is none. */
  get lastEventId(): string | null {
    return this.#segments.at(-1)?.lastEventId ?? null;
  }

  /** Appends the next segments. */
  add(entries: readonly SegmentEntry[]): void {
    for (const entry of entries) this.#segments.push(new SealedSegment(entry, this.#caches));
    this.#files = [...this.#segments];
  }

  /** Checks the footer of the last segment, where history continues, against the manifest. */
  async checkLast(): Promise<void> {
    await this.#segments.at(-1)?.use(() => {});
  }

  /** Last sealed event of a source; null when it has none. @throws {CorruptLogError} */
  sourceFrontier(source: string): Promise<string | null> {
    return this.#findFrontier(sourceKey(source));
  }

  /** Last sealed event of a stream; null when it has none. @throws {CorruptLogError} */
  streamFrontier(source: string, stream: string): Promise<string | null> {
    return this.#findFrontier(streamKey(source, stream));
  }

  /**
   * The sealed batch of that identity; null when there is none. Newest segments first.
   * @throws {CorruptLogError}
   */
  async findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    const hash = batchKeyHash(source, batchId);
    let number = this.#segments.length;
    while ((number = await this.#filters.newest(hash, 0, number)) >= 0) {
      const segment = this.#segments[number]!;
      const entry = await segment.use((opened) => findBatch(opened, source, batchId));
      if (entry !== null) return entry;
    }
    return null;
  }

  /** Closes all segments. No read may be in progress. */
  async close(): Promise<void> {
    await this.#caches.tables.close();
  }

  /** Last event of an entry of the stream indexes, looked for in the newest segment first. */
  async #findFrontier(key: string): Promise<string | null> {
    const known = this.#frontiers.get(key);
    const segments = this.#segments.length;
    const hash = streamKeyHash(key);
    let lastEventId = known?.lastEventId ?? null;
    let number = segments;
    while ((number = await this.#filters.newest(hash, known?.segments ?? 0, number)) >= 0) {
      const entry = await findEntry(this.#segments[number]!.streamIndex, key);
      if (entry === null) continue;
      lastEventId = entry.lastEventId;
      break;
    }
    this.#frontiers.set(key, { lastEventId, segments });
    return lastEventId;
  }
}

/**
 * The key filters in memory, as many as fit the limit. A lookup asks all segments, so nothing is
 * evicted: no filter is used more than another.
 */
export class KeyFilters {
  readonly #segments: readonly SealedSegment[];
  readonly #limitBytes: number;
  /** By the number of the segment. */
  readonly #held: (Uint8Array | undefined)[] = [];
  #heldBytes = 0;

  /** @param segments from oldest to newest; grows at its end. */
  constructor(segments: readonly SealedSegment[], limitBytes: number = KEY_FILTERS_BYTES_MAX) {
    this.#segments = segments;
    this.#limitBytes = limitBytes;
  }

  /** Bytes of the filters held. */
  get sizeBytes(): number {
    return this.#heldBytes;
  }

  /**
   * Returns the number of the newest of the segments [from, to) that may hold a key, or -1. Awaits
   * only where a filter is not in memory: a new batch asks every segment.
   * @throws {CorruptLogError}
   */
  async newest(hash: Hash64, from: number, to: number): Promise<number> {
    for (let number = to - 1; number >= from; number--) {
      const filter = this.#held[number];
      const mayHold = filter === undefined
        ? await this.#segments[number]!.use((segment) => this.#ask(segment, number, hash))
        : mayHoldKey(filter, hash);
      if (mayHold) return number;
    }
    return -1;
  }

  /** Reads the filter of a segment and keeps it, or reads one page where there is no room. */
  async #ask(segment: Segment, number: number, hash: Hash64): Promise<boolean> {
    const { bytes } = segment.metadata.key_filter;
    const hasRoom = () => this.#heldBytes + bytes <= this.#limitBytes;
    const filter = hasRoom() ? await readWhole(segment) : null;
    if (filter === null) return await segment.mayHoldKey(hash);
    // A concurrent lookup may have read it too, or taken the room.
    if (this.#held[number] === undefined && hasRoom()) {
      this.#held[number] = filter;
      this.#heldBytes += bytes;
    }
    return mayHoldKey(filter, hash);
  }
}

/** Reads the filter of a segment; null where a page is damaged, so that it fails only its keys. */
async function readWhole(segment: Segment): Promise<Uint8Array | null> {
  try {
    return await segment.readKeyFilter();
  } catch (error) {
    if (error instanceof SegmentError) return null;
    throw error;
  }
}
