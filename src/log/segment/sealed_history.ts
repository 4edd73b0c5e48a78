/**
 * The segments of a log together: finds batches and last events in them without their rows being
 * read. Segments are opened when they are first asked; what is kept of them in memory is bounded.
 */
import type { BatchEntry } from "../wal/commit_frame.ts";
import { batchKeyHash, streamKeyHash } from "./key_filter.ts";
import { KeyFilters } from "./key_filters.ts";
import { LruCache } from "../../lru_cache.ts";
import { ListedSegment, type StreamBlockCache } from "./listed_segment.ts";
import type { SegmentEntry } from "./manifest.ts";
import { RowGroupCache } from "./row_group_cache.ts";
import { findBatch } from "./segment_batches.ts";
import { TableCache } from "./table_cache.ts";
import { SegmentView } from "./segment_view.ts";
import { sourceKey } from "./stream_index.ts";
import { findEntry } from "./stream_index_reader.ts";
import type { LogFile } from "../read/snapshot.ts";
import { streamKey } from "../read/stream_counts.ts";
import type { Storage } from "../storage/storage.ts";

/** Blocks of stream indexes kept in memory, those of all segments together. */
const STREAM_BLOCKS_BYTES_MAX = 16 * 1024 * 1024;
/** Last events of sealed sources and streams kept in memory: about 8 MiB. */
const FRONTIERS_CACHED_MAX = 32 * 1024;

interface KnownFrontier {
  /** Null when none of the segments has it. */
  lastEventId: string | null;
  /** How many segments, from the oldest on, that was found in. */
  segments: number;
}

export class SealedHistory {
  readonly #tables: TableCache;
  readonly #streamBlocks: StreamBlockCache = new LruCache(
    STREAM_BLOCKS_BYTES_MAX,
    (block) => block.sizeBytes,
  );
  readonly #rowGroups = new RowGroupCache();
  /** From oldest to newest. */
  readonly #segments: ListedSegment[] = [];
  readonly #filters = new KeyFilters(this.#segments);
  /** By key of the stream indexes. */
  readonly #frontiers = new LruCache<KnownFrontier>(FRONTIERS_CACHED_MAX);
  #files: readonly LogFile[] = [];

  constructor(storage: Storage) {
    this.#tables = new TableCache(storage);
  }

  /** The segments for readers, from oldest to newest. The list never changes; `add` makes one. */
  get files(): readonly LogFile[] {
    return this.#files;
  }

  /** Last event of the last segment; null when there is none. */
  get lastEventId(): string | null {
    return this.#segments.at(-1)?.lastEventId ?? null;
  }

  /** Takes in the next segments. */
  add(entries: readonly SegmentEntry[]): void {
    const segments = entries.map((entry) =>
      new ListedSegment(entry, this.#tables, this.#streamBlocks)
    );
    for (const segment of segments) this.#segments.push(segment);
    const views = segments.map((segment) => new SegmentView(segment, this.#rowGroups));
    this.#files = [...this.#files, ...views];
  }

  /** Holds the footer of the last segment, which history goes on from, to the manifest. */
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

  /** Nothing may be reading any more. */
  async close(): Promise<void> {
    await this.#tables.close();
  }

  /** Last event of an entry of the stream indexes, looked for in the newest segment first. */
  async #findFrontier(key: string): Promise<string | null> {
    const known = this.#frontiers.get(key);
    const segments = this.#segments.length;
    const hash = streamKeyHash(key);
    let lastEventId = known?.lastEventId ?? null;
    let number = segments;
    while ((number = await this.#filters.newest(hash, known?.segments ?? 0, number)) >= 0) {
      const entry = await findEntry(this.#segments[number]!.streams, key);
      if (entry === null) continue;
      lastEventId = entry.lastEventId;
      break;
    }
    this.#frontiers.set(key, { lastEventId, segments });
    return lastEventId;
  }
}
