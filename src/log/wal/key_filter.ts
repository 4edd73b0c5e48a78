/**
 * In-memory Bloom filters over the record keys in each block of a commit file. A replay of one key
 * reads only the blocks whose filters match.
 */
import type { Buffer } from "node:buffer";
import { eventLineEnd, viewFor } from "../line/line_bytes.ts";
import { lineRecordKey } from "../line/stored_line.ts";
import { addToFilter, type BloomFilter } from "../parquet/bloom_filter.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";

/**
 * Filters take 256 KiB for a full tail. The false-positive rate is one in 5,000 for a block of 80
 * typical events, and one in 60 for a block of 200 events of minimum size.
 */
const KEY_FILTER_BYTES = 256;

export function emptyKeyFilter(): BloomFilter {
  return new Uint8Array(KEY_FILTER_BYTES);
}

/** Adds the keys from complete event lines. */
export function addKeys(filter: BloomFilter, lines: Buffer): void {
  const view = viewFor(lines);
  for (let start = 0; start < lines.length; start = eventLineEnd(view, start)) {
    addToFilter(filter, xxhash64(lineRecordKey(lines, start)));
  }
}
