/**
 * The Bloom filters of row groups (parquet-format, BloomFilter.md, "split block"). They are asked
 * by the thousand, so a question costs one hash, whatever the number of filters, and nothing is
 * allocated.
 */
import { readBloomFilter } from "hyparquet/src/bloom.js";
import { createBloomFilter } from "hyparquet-writer/src/bloom.js";
import { decoding, SegmentError } from "./segment_error.ts";
import { thriftStructEnd } from "./thrift_bounds.ts";
import { type Hash64, xxhash64 } from "./xxhash64.ts";

/** A filter's words, eight to a block. */
export type BloomFilter = Uint32Array;

/**
 * Multipliers of the eight words of a block. The high half of a value's hash chooses the block, the
 * low half one bit in each word of it.
 */
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
export const WORDS_PER_BLOCK: number = SALT.length;

/**
 * A filter of some values, sized for as many as differ.
 * @param falseShare of other values, how many it lets pass at the most.
 */
export function buildBloomFilter(values: Iterable<Uint8Array>, falseShare: number): BloomFilter {
  const hashes: Hash64[] = [];
  const distinct = new Set<number>();
  for (const value of values) {
    const hash = xxhash64(value);
    hashes.push(hash);
    // 53 bits of the hash tell values apart well enough to count them.
    distinct.add(hash.high * 2 ** 21 + (hash.low >>> 11));
  }
  const filter = createBloomFilter(distinct.size, falseShare);
  for (const hash of hashes) {
    const start = blockStart(filter, hash);
    for (let word = 0; word < WORDS_PER_BLOCK; word++) {
      filter[start + word]! |= 1 << bitOf(hash, word);
    }
  }
  return filter;
}

/** Whether the value of a hash may be among those of the filter; never false for one that is. */
export function mayContain(filter: BloomFilter, hash: Hash64): boolean {
  const start = blockStart(filter, hash);
  for (let word = 0; word < WORDS_PER_BLOCK; word++) {
    if ((filter[start + word]! >>> bitOf(hash, word) & 1) === 0) return false;
  }
  return true;
}

/** Decodes a filter with its header. @throws {SegmentError} */
export function decodeBloomFilter(bytes: Uint8Array): BloomFilter {
  const headerEnd = thriftStructEnd(bytes, 0, bytes.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const filter = decoding("a Bloom filter", () => readBloomFilter({ view, offset: 0 }));
  if (filter === undefined || filter.numBytes !== bytes.length - headerEnd) {
    throw new SegmentError("malformed Bloom filter");
  }
  return filter.blocks;
}

/** Size of a filter that takes so many bytes with its header, which is shorter. */
export function bloomFilterBytes(sizeBytes: number): number {
  return 2 ** Math.floor(Math.log2(sizeBytes));
}

function blockStart(filter: BloomFilter, { high }: Hash64): number {
  const blocks = filter.length / WORDS_PER_BLOCK;
  return Math.floor(high * blocks / 2 ** 32) * WORDS_PER_BLOCK;
}

/** The bit that a value sets in a word of its block. */
export function bitOf({ low }: Hash64, word: number): number {
  return Math.imul(low, SALT[word]!) >>> 27;
}
