/**
 * The Bloom filters of row groups. Those of one column of one segment are read together, into a
 * cache for all segments of a log, open or not.
 */
import { LruCache } from "../../lru_cache.ts";
import { type BloomFilter, decodeBloomFilter, mayContain } from "../parquet/bloom_filter.ts";
import { type FileRange, readRanges } from "../parquet/read_range.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";
import type { StorageFile } from "../storage/storage.ts";

/** Bloom filters kept in memory. Those of ten million record keys take 20 MiB. */
export const BLOOM_FILTER_CACHE_BYTES_MAX: number = 32 * 1024 * 1024;

/** The filters of one column, by row group; null where it has none. */
export type ColumnFilters = readonly (BloomFilter | null)[];

/** The filters of columns, by `filtersKey()`. */
export type FilterCache = LruCache<ColumnFilters>;

/** Returns an empty cache. */
export function newFilterCache(): FilterCache {
  return new LruCache<ColumnFilters>(BLOOM_FILTER_CACHE_BYTES_MAX, sizeOf);
}

/** The key of the filters of a column of the segment at `path`. */
export function filtersKey(path: string, column: string): string {
  return `${path} ${column}`;
}

/** Reads the filters at `ranges`. @throws {SegmentError} */
export async function readFilters(
  file: StorageFile,
  ranges: readonly (FileRange | null)[],
): Promise<ColumnFilters> {
  const blobs = await readRanges(file, ranges.filter((range) => range !== null));
  return ranges.map((range) => range === null ? null : decodeBloomFilter(blobs.shift()!));
}

/** Whether a row group may hold the value of a hash. */
export function mayHold(filters: ColumnFilters, number: number, hash: Hash64): boolean {
  const filter = filters[number];
  return filter === null || filter === undefined || mayContain(filter, hash);
}

function sizeOf(filters: ColumnFilters): number {
  return filters.reduce((sum, filter) => sum + (filter?.byteLength ?? 0), 0);
}
