/**
 * The Bloom filters of row groups: those of one column of one segment are read together and kept in
 * a cache that serves all segments of a log, also those that were closed since.
 */
import { LruCache } from "../../lru_cache.ts";
import { type BloomFilter, decodeBloomFilter, mayContain } from "../parquet/bloom_filter.ts";
import { type FileRange, readRanges } from "../parquet/read_range.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";
import type { StorageFile } from "../storage/storage.ts";

/**
 * Bloom filters kept in memory, of all segments together. Those of ten million record keys take 20
 * MiB.
 */
export const BLOOM_FILTER_CACHE_BYTES_MAX: number = 32 * 1024 * 1024;

/** The filters of one column: one for each row group, null where it has none. */
export type ColumnFilters = readonly (BloomFilter | null)[];

/** The filters of columns, by `filtersKey()`. */
export type FilterCache = LruCache<ColumnFilters>;

/** An empty cache. */
export function newFilterCache(): FilterCache {
  return new LruCache<ColumnFilters>(BLOOM_FILTER_CACHE_BYTES_MAX, sizeOf);
}

/** The key of the filters of a column of the segment at `path`. */
export function filtersKey(path: string, column: string): string {
  return `${path} ${column}`;
}

/** Reads filters, one for each place. @throws {SegmentError} */
export async function readFilters(
  file: StorageFile,
  places: readonly (FileRange | null)[],
): Promise<ColumnFilters> {
  const blobs = await readRanges(file, places.filter((place) => place !== null));
  return places.map((place) => place === null ? null : decodeBloomFilter(blobs.shift()!));
}

/** Whether the filter of a row group lets the value of a hash pass. */
export function mayHold(filters: ColumnFilters, number: number, hash: Hash64): boolean {
  const filter = filters[number];
  return filter === null || filter === undefined || mayContain(filter, hash);
}

function sizeOf(filters: ColumnFilters): number {
  return filters.reduce((sum, filter) => sum + (filter?.byteLength ?? 0), 0);
}
