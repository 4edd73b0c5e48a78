/**
 * Looks values up in the Bloom filters of row groups (parquet-format, BloomFilter.md). Filters are kept
 * as they are in the file and asked by the thousand, so a question costs one hash, whatever the number
 * of filters, and nothing is allocated for it.
 */
import { readBloomFilter } from "hyparquet/src/bloom.js";
import { xxhash64 } from "hyparquet/src/xxhash.js";
import { SegmentError } from "./segment_error.ts";
import { thriftStructEnd } from "./thrift_bounds.ts";

/** Multipliers of the eight words of a block, by the format. */
const SALT = Int32Array.of(
  0x47b6137b,
  0x44974d91,
  0x8824ad5b,
  0xa2b7289d,
  0x705495c7,
  0x2df1424b,
  0x9efc4947,
  0x5c6bfb31,
);
const WORDS_PER_BLOCK = 8;

/** The two halves of a value's 64-bit hash. */
export interface BloomHash {
  /** Chooses the block. */
  high: number;
  /** Chooses one bit in each word of it. */
  low: number;
}

/** A filter's words. */
export type BloomFilter = Uint32Array;

export function bloomHash(value: Uint8Array): BloomHash {
  const hash = xxhash64(value);
  return { high: Number(hash >> 32n), low: Number(hash & 0xffff_ffffn) };
}

/** Whether the value may be among those of the filter; never false for one that is. */
export function mayContain(filter: BloomFilter, { high, low }: BloomHash): boolean {
  const blocks = filter.length / WORDS_PER_BLOCK;
  const start = Math.floor(high * blocks / 2 ** 32) * WORDS_PER_BLOCK;
  for (let word = 0; word < WORDS_PER_BLOCK; word++) {
    const bit = Math.imul(low, SALT[word]!) >>> 27;
    if ((filter[start + word]! >>> bit & 1) === 0) return false;
  }
  return true;
}

/** Decodes a filter with its header. @throws {SegmentError} */
export function decodeBloomFilter(bytes: Uint8Array): BloomFilter {
  const headerEnd = thriftStructEnd(bytes, 0, bytes.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const filter = readBloomFilter({ view, offset: 0 });
  if (filter === undefined || filter.numBytes !== bytes.length - headerEnd) {
    throw new SegmentError("malformed Bloom filter");
  }
  return filter.blocks;
}
