/**
 * In-memory Bloom filters over the record keys in each block of a commit file. A replay of one key
 * reads only the blocks whose filters match.
 */
import type { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { eventLineEnd, viewFor } from "../line/line_bytes.ts";
import { lineRecordKey } from "../line/stored_line.ts";
import {
  addToBlock,
  blockMayContain,
  BLOOM_BLOCK_BYTES,
  bloomBlock,
  type Hash64,
} from "../line/bloom_block.ts";

/**
 * Size of a filter, eight blocks; 256 KiB for a full tail. The false-positive rate is one in 5,000
 * for a block of 80 typical events, and one in 60 for a block of 200 events of minimum size.
 */
export const KEY_FILTER_BYTES = 256;

/** Adds the keys from complete event lines. */
export function addKeys(filter: Uint8Array, lines: Buffer): void {
  const view = viewFor(lines);
  for (let start = 0; start < lines.length; start = eventLineEnd(view, start)) {
    const key = recordKeyHash(lineRecordKey(lines, start));
    addToBlock(filter, blockStart(key), key);
  }
}

/** Whether a filter may contain a key; never a false negative. */
export function mayContain(filter: Uint8Array, key: Hash64): boolean {
  return blockMayContain(filter, blockStart(key), key);
}

/** Hashes a key as it is spelled in lines. The filters stay in memory, so a weak hash suffices. */
export function recordKeyHash(spelled: Uint8Array): Hash64 {
  const low = crc32(spelled);
  return { high: Math.imul(low, 0x9e3779b1) >>> 0, low };
}

function blockStart(key: Hash64): number {
  return bloomBlock(KEY_FILTER_BYTES / BLOOM_BLOCK_BYTES, key) * BLOOM_BLOCK_BYTES;
}
