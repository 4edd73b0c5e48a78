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

export class BloomCache {
  readonly #limitBytes: number;
  /** From the least to the most recently used. */
  readonly #entries = new Map<FilterSource, Promise<ColumnFilters>>();
  #sizeBytes = 0;

  constructor(limitBytes: number = BLOOM_FILTER_CACHE_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** Bytes of the filters held. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** The filters of a source, read when they are not at hand. */
  get(source: FilterSource): Promise<ColumnFilters> {
    const held = this.#entries.get(source);
    this.drop(source);
    const filters = held ?? source.load();
    this.#entries.set(source, filters);
    this.#sizeBytes += source.sizeBytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#sizeBytes <= this.#limitBytes) break;
      this.drop(oldest);
    }
    // What could not be read is asked for again.
    if (held === undefined) filters.catch(() => this.drop(source));
    return filters;
  }

  /** Forgets the filters of a source. */
  drop(source: FilterSource): void {
    if (this.#entries.delete(source)) this.#sizeBytes -= source.sizeBytes;
  }
}
