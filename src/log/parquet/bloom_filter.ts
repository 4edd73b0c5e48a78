/**
 * The Bloom filters for row groups (parquet-format, BloomFilter.md, "split block"). A lookup in
 * thousands of filters hashes the value once and allocates nothing.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { BLOOM_FILTER_HEADER } from "./parquet_format.ts";
import { SegmentError } from "./segment_error.ts";
import { decodeThrift, encodeThrift } from "./thrift_compact.ts";
import { type Hash64, xxhash64 } from "./xxhash64.ts";

/** The blocks of a filter, eight little-endian words each. */
export type BloomFilter = Uint8Array;

/**
 * Multipliers for the eight words of a block. The high half of a hash selects the block; the low
 * half selects one bit in each word of that block.
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
const WORD_BYTES = 4;
const BLOOM_BLOCK_BYTES: number = SALT.length * WORD_BYTES;

/** Size of the CRC-32 of header and filter. It follows the filter, so other engines ignore it. */
export const BLOOM_CRC_BYTES = 4;

/**
 * Builds a filter, sized for the number of distinct values.
 * @param falseShare maximum false-positive rate.
 */
export function buildBloomFilter(values: Iterable<Uint8Array>, falseShare: number): BloomFilter {
  const hashes: Hash64[] = [];
  const distinct = new Set<number>();
  for (const value of values) {
    const hash = xxhash64(value);
    hashes.push(hash);
    // 53 bits of the hash suffice to count distinct values.
    distinct.add(hash.high * 2 ** 21 + (hash.low >>> 11));
  }
  const filter = new Uint8Array(filterBytes(distinct.size, falseShare));
  for (const hash of hashes) addToFilter(filter, hash);
  return filter;
}

export function addToFilter(filter: BloomFilter, hash: Hash64): void {
  addToBlock(filter, blockStart(filter, hash), hash);
}

/** Returns the size for a number of values (see BloomFilter.md), rounded up to a power of two. */
function filterBytes(values: number, falseShare: number): number {
  const bits = -8 * values / Math.log(1 - falseShare ** (1 / 8));
  return 2 ** Math.ceil(Math.log2(Math.max(bits / 8, BLOOM_BLOCK_BYTES)));
}

/** Whether a filter may contain the value with this hash; never a false negative. */
export function mayContain(filter: BloomFilter, hash: Hash64): boolean {
  return blockMayContain(filter, blockStart(filter, hash), hash);
}

function blockStart(filter: BloomFilter, hash: Hash64): number {
  return bloomBlock(filter.length / BLOOM_BLOCK_BYTES, hash) * BLOOM_BLOCK_BYTES;
}

/** Returns the index of the block, out of `blocks`, that a hash selects. */
function bloomBlock(blocks: number, { high }: Hash64): number {
  return Math.floor(high * blocks / 2 ** 32);
}

function addToBlock(bytes: Uint8Array, start: number, hash: Hash64): void {
  for (let word = 0; word < SALT.length; word++) {
    const bit = bitAt(hash, word);
    bytes[start + (bit >>> 3)]! |= 1 << (bit & 7);
  }
}

/** Whether the block at `start` has all bits of a hash set. */
function blockMayContain(bytes: Uint8Array, start: number, hash: Hash64): boolean {
  for (let word = 0; word < SALT.length; word++) {
    const bit = bitAt(hash, word);
    if ((bytes[start + (bit >>> 3)]! >>> (bit & 7) & 1) === 0) return false;
  }
  return true;
}

/** Returns the index, within a block, of the bit that a hash sets in word number `word`. */
function bitAt({ low }: Hash64, word: number): number {
  return 8 * WORD_BYTES * word + (Math.imul(low, SALT[word]!) >>> 27);
}

/** Encodes a filter for the file: header, blocks, and the CRC-32 of both. */
export function encodeBloomFilter(filter: BloomFilter): Buffer {
  const header = encodeThrift(BLOOM_FILTER_HEADER, {
    numBytes: filter.length,
    algorithm: { BLOCK: {} },
    hash: { XXHASH: {} },
    compression: { UNCOMPRESSED: {} },
  });
  const bytes = Buffer.concat([header, filter], header.length + filter.length + BLOOM_CRC_BYTES);
  const crcAt = bytes.length - BLOOM_CRC_BYTES;
  bytes.writeUInt32LE(crc32(bytes.subarray(0, crcAt)), crcAt);
  return bytes;
}

/** Decodes a filter into a copy. @throws {SegmentError} if it is malformed or damaged. */
export function decodeBloomFilter(bytes: Buffer): BloomFilter {
  const crcAt = bytes.length - BLOOM_CRC_BYTES;
  const { value: { numBytes }, end } = decodeThrift(BLOOM_FILTER_HEADER, bytes);
  const isValid = numBytes === crcAt - end && numBytes > 0 && numBytes % BLOOM_BLOCK_BYTES === 0 &&
    bytes.readUInt32LE(crcAt) === crc32(bytes.subarray(0, crcAt));
  if (!isValid) throw new SegmentError("a Bloom filter is malformed or does not match its CRC-32");
  return Uint8Array.from(bytes.subarray(end, crcAt));
}
