/**
 * All segments in a log. Finds batches and frontiers, using key filters to skip segments. Files are
 * opened on first use, and the memory of filters and caches is bounded.
 */
import type { BatchEntry } from "../wal/commit_frame.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";
import type { SealedFile } from "../read/snapshot.ts";
import { streamKey } from "../read/stream_counts.ts";
import type { Storage } from "../storage/storage.ts";
import { batchKeyHash, mayHoldKey, streamKeyHash } from "./key_filter.ts";
import type { SegmentEntry } from "./manifest.ts";
import { sealedSegment } from "./sealed_segment.ts";
import { findBatch } from "./segment_batches.ts";
import { OpenFiles, openListedFile, SegmentCaches } from "./segment_caches.ts";
import { Segment } from "./segment_reader.ts";
import { findEntry, sourceKey } from "./stream_index.ts";

/** Number of files whose sizes are checked concurrently. The checks mostly wait for I/O. */
const CHECKED_AT_ONCE = 16;

/**
 * Memory for key filters. Ten million single-event batches and their streams need 57 MiB. Filters
 * beyond this limit stay on disk, and a lookup reads one page from each.
 */
const KEY_FILTERS_BYTES_MAX = 60 * 1024 * 1024;

export interface SealedHistoryOptions {
  /** Reports the first damaged page of each key filter. */
  report?: (line: string) => void;
  keyFiltersBytesMax?: number;
  openFilesMax?: number;
}

export class SealedHistory {
  readonly #storage: Storage;
  readonly #openFiles: OpenFiles;
  readonly #caches = new SegmentCaches();
  readonly #report: (line: string) => void;
  readonly #keyFiltersBytesMax: number;
  /** Oldest first. */
  readonly #segments: Segment[] = [];
  /**
   * The key filters in memory by segment number, up to the limit. None is evicted, because a lookup
   * probes all segments and so uses all filters equally often.
   */
  readonly #keyFilters: (Uint8Array | undefined)[] = [];
  #keyFiltersBytes = 0;
  #files: readonly SealedFile[] = [];

  constructor(
    storage: Storage,
    { report = () => {}, keyFiltersBytesMax = KEY_FILTERS_BYTES_MAX, openFilesMax }:
      SealedHistoryOptions = {},
  ) {
    this.#storage = storage;
    this.#report = report;
    this.#openFiles = new OpenFiles(storage, openFilesMax);
    this.#keyFiltersBytesMax = keyFiltersBytesMax;
  }

  /** The segments as readers see them, oldest first. `add()` replaces the array. */
  get files(): readonly SealedFile[] {
    return this.#files;
  }

  /** Last event in the last segment; null if there is none. */
  get lastEventId(): string | null {
    return this.#files.at(-1)?.lastEventId ?? null;
  }

  add(entries: readonly SegmentEntry[]): void {
    const files = entries.map((entry) => {
      const file = this.#openFiles.fileOf(entry);
      const segment = new Segment(entry, file, this.#caches, this.#report);
      this.#segments.push(segment);
      return sealedSegment(segment, entry.last_event_id);
    });
    this.#files = [...this.#files, ...files];
  }

  /**
   * Appends the segments in a manifest. To keep startup fast, checks only that each file exists
   * with the expected size, and that the last segment, where history continues, has a valid footer.
   * @throws {CorruptLogError} for the first file that is missing or differs.
   */
  async open(entries: readonly SegmentEntry[]): Promise<void> {
    for (let start = 0; start < entries.length; start += CHECKED_AT_ONCE) {
      const group = entries.slice(start, start + CHECKED_AT_ONCE);
      const checks = await Promise.allSettled(
        group.map(async (entry) => await (await openListedFile(this.#storage, entry)).close()),
      );
      const failed = checks.find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
    }
    this.add(entries);
    await this.#segments.at(-1)?.footer();
  }

  /** Returns the last sealed event from a source; null if it has none. @throws {SegmentError} */
  sourceFrontier(source: string): Promise<string | null> {
    return this.#findFrontier(sourceKey(source));
  }

  /** Returns the last sealed event in a stream; null if it has none. @throws {SegmentError} */
  streamFrontier(source: string, stream: string): Promise<string | null> {
    return this.#findFrontier(streamKey(source, stream));
  }

  /** Returns the sealed batch with this identity; null if there is none. @throws {SegmentError} */
  findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    const hash = batchKeyHash(source, batchId);
    return this.#findNewest(hash, (segment) => findBatch(segment, source, batchId));
  }

  async close(): Promise<void> {
    await this.#openFiles.close();
  }

  async #findFrontier(key: string): Promise<string | null> {
    const entry = await this.#findNewest(streamKeyHash(key), (segment) => findEntry(segment, key));
    return entry?.lastEventId ?? null;
  }

  /** Returns the first result of `find` that is not null, searching the newest segment first. */
  async #findNewest<Found>(
    hash: Hash64,
    find: (segment: Segment) => Promise<Found | null>,
  ): Promise<Found | null> {
    for (let number = this.#segments.length - 1; number >= 0; number--) {
      const filter = this.#keyFilters[number];
      // Don't await if the filter is in memory, since a new batch probes every segment.
      const mayHold = filter === undefined
        ? await this.#mayHold(number, hash)
        : mayHoldKey(filter, hash);
      const found = mayHold ? await find(this.#segments[number]!) : null;
      if (found !== null) return found;
    }
    return null;
  }

  /** Loads the key filter for a segment into memory, or reads one page if the limit is reached. */
  async #mayHold(number: number, hash: Hash64): Promise<boolean> {
    const segment = this.#segments[number]!;
    const { key_filter_bytes: bytes } = (await segment.footer()).metadata;
    const hasRoom = () => this.#keyFiltersBytes + bytes <= this.#keyFiltersBytesMax;
    if (!hasRoom()) return await segment.mayHoldKey(hash);
    const filter = await segment.readKeyPages(0, bytes);
    // A concurrent lookup may have loaded the filter or exhausted the limit.
    if (this.#keyFilters[number] === undefined && hasRoom()) {
      this.#keyFilters[number] = filter;
      this.#keyFiltersBytes += bytes;
    }
    return mayHoldKey(filter, hash);
  }
}
