/**
 * The Bloom filters of sealed history that are in memory: all filters of one column of one segment
 * together, the least recently used ones dropped first. One cache serves all segments of a log,
 * also those that are closed meanwhile.
 */
import type { BloomFilter } from "../parquet/bloom_filter.ts";

/**
 * Bloom filters kept in memory, of all segments together. Those of ten million record keys take 20
 * MiB.
 */
export const BLOOM_FILTER_CACHE_BYTES_MAX: number = 24 * 1024 * 1024;

/** The filters of one column: one for each row group, null where it has none. */
export type ColumnFilters = readonly (BloomFilter | null)[];

/** What is asked for: how much room it takes, and how to read it. */
export interface FilterSource {
  /** See `bloomKey()`. */
  readonly key: string;
  readonly sizeBytes: number;
  load(): Promise<ColumnFilters>;
}

/** A source's filters, or how they are on their way. */
interface Entry {
  sizeBytes: number;
  filters: ColumnFilters | null;
  loading: Promise<ColumnFilters>;
}

/** Under which the filters of a column of the segment at `path` are kept. */
export function bloomKey(path: string, column: string): string {
  return `${path} ${column}`;
}

export class BloomCache {
  readonly #limitBytes: number;
  /** From the least to the most recently used. */
  readonly #entries = new Map<string, Entry>();
  #sizeBytes = 0;

  constructor(limitBytes: number = BLOOM_FILTER_CACHE_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** Bytes of the filters held. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The filters under a key if they are in memory. */
  peek(key: string): ColumnFilters | null {
    const entry = this.#entries.get(key);
    if (entry === undefined) return null;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.filters;
  }

  /** The filters of a source, read when they are not in memory. */
  async get(source: FilterSource): Promise<ColumnFilters> {
    const { key } = source;
    return this.peek(key) ?? await (this.#entries.get(key) ?? this.#load(source)).loading;
  }

  #load({ key, sizeBytes, load }: FilterSource): Entry {
    const entry: Entry = { sizeBytes, filters: null, loading: load() };
    entry.loading.then(
      (filters) => void (entry.filters = filters),
      // Whoever waits is told; what could not be read is asked for again.
      () => this.#entries.get(key) === entry && this.#drop(key),
    );
    this.#entries.set(key, entry);
    this.#sizeBytes += sizeBytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#sizeBytes <= this.#limitBytes) break;
      this.#drop(oldest);
    }
    return entry;
  }

  #drop(key: string): void {
    this.#sizeBytes -= this.#entries.get(key)!.sizeBytes;
    this.#entries.delete(key);
  }
}
