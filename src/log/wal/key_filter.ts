/**
 * The record keys in a block of a commit file, as a Bloom filter in memory: a replay of one key
 * reads only the blocks that may hold it.
 */
import type { Buffer } from "node:buffer";
import { viewFor } from "../line/line_bytes.ts";
import { eventLineEnd, lineRecordKey } from "../line/stored_line.ts";
import { addToFilter, type BloomFilter } from "../parquet/bloom_filter.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";

/**
 * 256 KiB for a full tail. A block has 80 typical events, of which one absent key in 5,000 passes
 * the filter, and at most 200 of the smallest, with one in 60.
 */
const KEY_FILTER_BYTES = 256;

/** A filter without keys. */
export function emptyKeyFilter(): BloomFilter {
  return new Uint8Array(KEY_FILTER_BYTES);
}

/** Adds the keys of event lines, which are whole. */
export function addKeys(filter: BloomFilter, lines: Buffer): void {
  const view = viewFor(lines);
  for (let start = 0; start < lines.length; start = eventLineEnd(view, start)) {
    addToFilter(filter, xxhash64(lineRecordKey(lines, start)));
  }
}
