/**
 * The key filter for a segment: a split-block Bloom filter (parquet-format, BloomFilter.md) over
 * its batches, sources and streams. The number of blocks need not be a power of two, so filters
 * stay small even though a log keeps hundreds in memory. Each page has its own CRC-32, so a lookup
 * can also read a single page from the file.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import {
  addToBlock,
  blockMayContain,
  BLOOM_BLOCK_BYTES,
  bloomBlock,
} from "../parquet/bloom_filter.ts";
import { type Hash64, xxhash64 } from "../parquet/xxhash64.ts";

/** A page consists of blocks, 28 bytes of padding, and the CRC-32 of both. */
export const KEY_PAGE_BYTES = 4 * 1024;
const PAGE_BLOCKS = 127;
const CRC_START = KEY_PAGE_BYTES - 4;
/** Gives a false-positive rate of 1 in 6,000 per filter, or 1 in 50 across 110 segments. */
const BITS_PER_KEY = 24;

/** Hashes a batch's identity. The key is unambiguous, since no source contains a space. */
export function batchKeyHash(source: string, batchId: string): Hash64 {
  return xxhash64(Buffer.from(`batch ${source} ${batchId}`));
}

/** Hashes a stream index key, which identifies a stream or a source. */
export function streamKeyHash(key: string): Hash64 {
  return xxhash64(Buffer.from(`stream ${key}`));
}

/** Returns the offset of a key's page in a filter of `sizeBytes`, and of its block in that page. */
export function keyPlace(sizeBytes: number, hash: Hash64): { page: number; block: number } {
  const block = bloomBlock(sizeBytes / KEY_PAGE_BYTES * PAGE_BLOCKS, hash);
  return {
    page: Math.floor(block / PAGE_BLOCKS) * KEY_PAGE_BYTES,
    block: block % PAGE_BLOCKS * BLOOM_BLOCK_BYTES,
  };
}

/**
 * Makes damaged pages match every key, so that lookups fall back to the rows. A damaged filter
 * slows requests down, but no request fails.
 * @returns where the first damaged page starts; null if there is none.
 */
export function openDamagedPages(pages: Buffer): number | null {
  let damaged: number | null = null;
  for (let start = 0; start < pages.length; start += KEY_PAGE_BYTES) {
    const page = pages.subarray(start, start + KEY_PAGE_BYTES);
    if (crc32(page.subarray(0, CRC_START)) === page.readUInt32LE(CRC_START)) continue;
    page.fill(0xff);
    damaged ??= start;
  }
  return damaged;
}

/** Whether a filter may contain a key; never a false negative. */
export function mayHoldKey(filter: Uint8Array, hash: Hash64): boolean {
  const { page, block } = keyPlace(filter.length, hash);
  return blockMayContain(filter, page + block, hash);
}

export function buildKeyFilter(keys: readonly Hash64[]): Buffer {
  const pages = Math.ceil(keys.length * BITS_PER_KEY / (PAGE_BLOCKS * 8 * BLOOM_BLOCK_BYTES));
  const filter = Buffer.alloc(Math.max(1, pages) * KEY_PAGE_BYTES);
  for (const hash of keys) {
    const { page, block } = keyPlace(filter.length, hash);
    addToBlock(filter, page + block, hash);
  }
  for (let start = 0; start < filter.length; start += KEY_PAGE_BYTES) {
    const crcStart = start + CRC_START;
    filter.writeUInt32LE(crc32(filter.subarray(start, crcStart)), crcStart);
  }
  return filter;
}
