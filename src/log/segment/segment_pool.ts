/**
 * The segments of a log that are open, opened when they are first read. When there are more than
 * the bound, those that nobody reads are closed, the least recently used ones first.
 */
import { Buffer } from "node:buffer";
import { BloomCache, bloomKey } from "./bloom_cache.ts";
import { openListedSegment } from "./listed_file.ts";
import type { SegmentEntry } from "./manifest.ts";
import { passes, type Segment } from "./segment_reader.ts";
import type { FilteredColumn } from "./segment_schema.ts";
import type { Storage } from "../storage/storage.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";

/** Segments open at a time, beside those that are being read. */
const SEGMENTS_OPEN_MAX = 128;

interface Opened {
  segment: Promise<Segment>;
  /** Readers at work. */
  users: number;
}

export class SegmentPool {
  readonly #storage: Storage;
  readonly #openMax: number;
  readonly #blooms = new BloomCache();
  /** From the least to the most recently used. */
  readonly #opened = new Map<SegmentEntry, Opened>();

  constructor(storage: Storage, openMax: number = SEGMENTS_OPEN_MAX) {
    this.#storage = storage;
    this.#openMax = openMax;
  }

  /**
   * Runs `read` over a segment, which stays open so long.
   * @throws {CorruptLogError} the file is missing, is no segment, or not the one of the manifest.
   */
  async use<Result>(
    entry: SegmentEntry,
    read: (segment: Segment) => Result | Promise<Result>,
  ): Promise<Result> {
    const opened = this.#take(entry);
    try {
      return await read(await opened.segment);
    } finally {
      opened.users -= 1;
      if (this.#opened.size > this.#openMax) await this.#closeIdle();
    }
  }

  /**
   * Whether no event of a segment has that value in a column, as far as memory tells: a segment
   * need not be open for it. False for any value.
   */
  lacks({ path }: SegmentEntry, column: FilteredColumn, value: string | undefined): boolean {
    if (value === undefined) return false;
    const filters = this.#blooms.peek(bloomKey(path, column));
    if (filters === null) return false;
    const hash = xxhash64(Buffer.from(value));
    return filters.every((_, number) => !passes(filters, number, hash));
  }

  /** Closes all. Nobody may be reading. */
  async close(): Promise<void> {
    const opened = [...this.#opened.values()];
    this.#opened.clear();
    for (const { segment } of opened) await (await segment).close();
  }

  #take(entry: SegmentEntry): Opened {
    const opened = this.#opened.get(entry) ?? this.#open(entry);
    this.#opened.delete(entry);
    this.#opened.set(entry, opened);
    opened.users += 1;
    return opened;
  }

  #open(entry: SegmentEntry): Opened {
    const opened = {
      segment: openListedSegment(this.#storage, entry, this.#blooms),
      users: 0,
    };
    // Whoever reads is told; the next one tries again.
    opened.segment.catch(() => this.#opened.delete(entry));
    return opened;
  }

  async #closeIdle(): Promise<void> {
    for (const [entry, { segment, users }] of this.#opened) {
      if (this.#opened.size <= this.#openMax) return;
      if (users > 0) continue;
      this.#opened.delete(entry);
      await (await segment).close();
    }
  }
}
