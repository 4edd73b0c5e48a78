/**
 * The open segments of a log, opened on first use. Beyond the limit the least recently used ones
 * are closed, each once its last reader is done.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { LruCache } from "../../lru_cache.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";
import type { Storage } from "../storage/storage.ts";
import { openListedSegment } from "./listed_file.ts";
import type { SegmentEntry } from "./manifest.ts";
import { filtersKey, mayHold, newFilterCache } from "./bloom_filter_cache.ts";
import type { Segment } from "./segment_reader.ts";
import type { FilteredColumn } from "./segment_schema.ts";

/** Segments open at a time, besides evicted ones that are still being read. */
const OPEN_SEGMENTS_MAX = 128;

interface Table {
  segment: Promise<Segment>;
  readers: number;
}

export class TableCache {
  readonly #storage: Storage;
  readonly #filters = newFilterCache();
  readonly #tables: LruCache<Table>;
  /** Evicted tables that are not closed yet. */
  readonly #dropped = new Set<Table>();
  #isClosed = false;
  /** Called when the last reader of a closed cache is done. */
  #drained: (() => void) | null = null;

  constructor(storage: Storage, openMax: number = OPEN_SEGMENTS_MAX) {
    this.#storage = storage;
    this.#tables = new LruCache(openMax, () => 1, (table) => this.#dropped.add(table));
  }

  /**
   * Runs `read` over a segment, which stays open meanwhile.
   * @throws {CorruptLogError} the file is missing, is no segment, or not the one of the manifest.
   */
  async use<Result>(
    entry: SegmentEntry,
    read: (segment: Segment) => Result | Promise<Result>,
  ): Promise<Result> {
    assert(!this.#isClosed, "no read of a segment begins once the log is closed");
    const table = this.#tables.get(entry.path) ?? this.#open(entry);
    table.readers += 1;
    try {
      return await read(await table.segment);
    } finally {
      table.readers -= 1;
      await this.#closeDropped();
      if (this.#dropped.size === 0) this.#drained?.();
    }
  }

  /**
   * Whether no event of a segment has that value in a column, as far as the Bloom filters in memory
   * show, open or not. False without a value.
   */
  lacks({ path }: SegmentEntry, column: FilteredColumn, value: string | undefined): boolean {
    if (value === undefined) return false;
    const filters = this.#filters.get(filtersKey(path, column));
    if (filters === undefined) return false;
    const hash = xxhash64(Buffer.from(value));
    return filters.every((_, number) => !mayHold(filters, number, hash));
  }

  /** Closes all segments once the reads that have begun are done; none may begin anymore. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#tables.clear();
    await this.#closeDropped();
    if (this.#dropped.size > 0) await new Promise<void>((resolve) => this.#drained = resolve);
  }

  #open(entry: SegmentEntry): Table {
    const table = { segment: openListedSegment(this.#storage, entry, this.#filters), readers: 0 };
    this.#tables.set(entry.path, table);
    // Its readers get the error; the next one tries again.
    table.segment.catch(() => this.#forget(entry.path, table));
    return table;
  }

  /** Drops a table that could not be opened: there is nothing to close. */
  #forget(path: string, table: Table): void {
    if (this.#tables.get(path) === table) this.#tables.delete(path);
    this.#dropped.delete(table);
  }

  async #closeDropped(): Promise<void> {
    for (const table of this.#dropped) {
      if (table.readers > 0) continue;
      this.#dropped.delete(table);
      await (await table.segment).close();
    }
  }
}
