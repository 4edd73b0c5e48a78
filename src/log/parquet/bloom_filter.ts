/**
 * The Bloom filters of row groups (parquet-format, BloomFilter.md, "split block"). They are asked
 * by the thousand, so a question costs one hash, whatever the number of filters, and nothing is
 * allocated.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { BLOOM_FILTER_HEADER } from "./parquet_format.ts";
import { SegmentError } from "./segment_error.ts";
import { decodeThrift, encodeThrift } from "./thrift_compact.ts";
import { type Hash64, xxhash64 } from "./xxhash64.ts";

/** The blocks of a filter: eight words each, with their lowest byte first. */
export type BloomFilter = Uint8Array;

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
const WORD_BYTES = 4;
export const BLOOM_BLOCK_BYTES: number = SALT.length * WORD_BYTES;

/** Behind a filter in the file, where no other engine looks: the CRC-32 of it and its header. */
export const BLOOM_CRC_BYTES = 4;

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
  const filter = new Uint8Array(filterBytes(distinct.size, falseShare));
  for (const hash of hashes) addToBlock(filter, blockStart(filter, hash), hash);
  return filter;
}

/** As many bytes as BloomFilter.md has for so many values, rounded up to a power of two. */
function filterBytes(values: number, falseShare: number): number {
  const bits = -8 * values / Math.log(1 - falseShare ** (1 / 8));
  return 2 ** Math.ceil(Math.log2(Math.max(bits / 8, BLOOM_BLOCK_BYTES)));
}

/** Whether the value of a hash may be among those of the filter; never false for one that is. */
export function mayContain(filter: BloomFilter, hash: Hash64): boolean {
  return blockMayContain(filter, blockStart(filter, hash), hash);
}

function blockStart(filter: BloomFilter, hash: Hash64): number {
  return bloomBlock(filter.length / BLOOM_BLOCK_BYTES, hash) * BLOOM_BLOCK_BYTES;
}

/** Number of the block, of so many, that tells of the value of a hash. */
export function bloomBlock(blocks: number, { high }: Hash64): number {
  return Math.floor(high * blocks / 2 ** 32);
}

/** Puts the value of a hash into the block that starts at `start`. */
export function addToBlock(bytes: Uint8Array, start: number, hash: Hash64): void {
  for (let word = 0; word < SALT.length; word++) {
    const bit = bitOf(hash, word);
    bytes[byteAt(start, word, bit)]! |= 1 << (bit & 7);
  }
}

/** Whether the block that starts at `start` has all bits of the value of a hash. */
export function blockMayContain(bytes: Uint8Array, start: number, hash: Hash64): boolean {
  for (let word = 0; word < SALT.length; word++) {
    const bit = bitOf(hash, word);
    if ((bytes[byteAt(start, word, bit)]! >>> (bit & 7) & 1) === 0) return false;
  }
  return true;
}

/** The bit that a value sets in a word of its block. */
function bitOf({ low }: Hash64, word: number): number {
  return Math.imul(low, SALT[word]!) >>> 27;
}

function byteAt(start: number, word: number, bit: number): number {
  return start + WORD_BYTES * word + (bit >>> 3);
}

/** A filter as it is in the file: its header, its blocks, their CRC-32. */
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

/**
 * A copy of the filter.
 * @throws {SegmentError} when that is not what `encodeBloomFilter()` gives.
 */
export function decodeBloomFilter(bytes: Buffer): BloomFilter {
  const crcAt = bytes.length - BLOOM_CRC_BYTES;
  const { value: { numBytes }, end } = decodeThrift(BLOOM_FILTER_HEADER, bytes);
  const isRight = numBytes === crcAt - end && numBytes > 0 && numBytes % BLOOM_BLOCK_BYTES === 0 &&
    bytes.readUInt32LE(crcAt) === crc32(bytes.subarray(0, crcAt));
  if (!isRight) throw new SegmentError("a Bloom filter is malformed or does not match its CRC-32");
  return Uint8Array.from(bytes.subarray(end, crcAt));
}
