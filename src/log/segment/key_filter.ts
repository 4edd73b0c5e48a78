/**
 * The key filters of a segment: split-block Bloom filters (parquet-format, BloomFilter.md). One is
 * over the segment's batches, sources and streams; each row group has one over its batches and
 * values. The number of blocks need not be a power of two, so filters stay small. Each page has its
 * own CRC-32, so a lookup can also read a single page from the file.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { sha256Hex } from "../../event/hash.ts";
import {
  addToBlock,
  blockMayContain,
  BLOOM_BLOCK_BYTES,
  bloomBlock,
  type Hash64,
} from "../line/bloom_block.ts";

/** A page consists of blocks, 28 bytes of padding, and the CRC-32 of both. */
export const KEY_PAGE_BYTES = 4 * 1024;
const PAGE_BLOCKS = 127;
const CRC_START = KEY_PAGE_BYTES - 4;
/** Gives a false-positive rate of 1 in 6,000 per filter, or 1 in 50 across 110 segments. */
const BITS_PER_KEY = 24;

/** The columns by which readers filter. */
export const FILTERED_COLUMNS = ["source", "stream", "record_key", "kind"] as const;
export type FilteredColumn = typeof FILTERED_COLUMNS[number];

/** Hashes a batch's identity. The key is unambiguous, since no source contains a space. */
export function batchKeyHash(source: string, batchId: string): Hash64 {
  return hash64(`batch ${source} ${batchId}`);
}

/** Hashes a stream index key, which identifies a stream or a source. */
export function streamKeyHash(key: string): Hash64 {
  return hash64(`stream ${key}`);
}

/** Hashes a value that readers filter by. */
export function valueKeyHash(column: FilteredColumn, value: string): Hash64 {
  return hash64(`${column} ${value}`);
}

/** Takes the start of a SHA-256. With a weaker hash, clients could craft keys that match. */
function hash64(key: string): Hash64 {
  const digits = sha256Hex(key);
  return { high: parseInt(digits.slice(0, 8), 16), low: parseInt(digits.slice(8, 16), 16) };
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
