/**
 * The Bloom filters of sealed history that are in memory: all filters of one column of one segment
 * together, the least recently used ones dropped first. One cache serves all segments of a log.
 */
import { BLOOM_FILTER_CACHE_BYTES_MAX } from "../limits.ts";
import type { BloomFilter } from "./bloom_filter.ts";

/** The filters of one column: one for each row group, null where it has none. */
export type ColumnFilters = readonly (BloomFilter | null)[];

/** What is asked for: how much room it takes, and how to read it. The object is the key. */
export interface FilterSource {
  readonly sizeBytes: number;
  load(): Promise<ColumnFilters>;
}

/** A source's filters, or how they are on their way. */
interface Entry {
  filters: ColumnFilters | null;
  loading: Promise<ColumnFilters>;
}

export class BloomCache {
  readonly #limitBytes: number;
  /** From the least to the most recently used. */
  readonly #entries = new Map<FilterSource, Entry>();
  #sizeBytes = 0;

  constructor(limitBytes: number = BLOOM_FILTER_CACHE_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** Bytes of the filters held. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The filters of a source if they are in memory. */
  peek(source: FilterSource): ColumnFilters | null {
    const entry = this.#entries.get(source);
    if (entry === undefined) return null;
    this.#entries.delete(source);
    this.#entries.set(source, entry);
    return entry.filters;
  }

  /** The filters of a source, read when they are not in memory. */
  async get(source: FilterSource): Promise<ColumnFilters> {
    return this.peek(source) ?? await (this.#entries.get(source) ?? this.#load(source)).loading;
  }

  /** Forgets the filters of a source. */
  drop(source: FilterSource): void {
    if (this.#entries.delete(source)) this.#sizeBytes -= source.sizeBytes;
  }

  #load(source: FilterSource): Entry {
    const entry: Entry = { filters: null, loading: source.load() };
    entry.loading.then(
      (filters) => void (entry.filters = filters),
      // Whoever waits is told; what could not be read is asked for again.
      () => this.#entries.get(source) === entry && this.drop(source),
    );
    this.#entries.set(source, entry);
    this.#sizeBytes += source.sizeBytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#sizeBytes <= this.#limitBytes) break;
      this.drop(oldest);
    }
    return entry;
  }
}
