/**
 * A split-block Bloom filter (parquet-format, BloomFilter.md) over key hashes. With 8 bits a key, 1
 * key in 40 that is absent passes. The number of blocks need not be a power of two.
 */
import type { Buffer } from "node:buffer";

const BITS_PER_KEY = 8;
/** Multipliers that select one bit in each word of a block. */
const SALT = Int32Array.of(
  ...[0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d],
  ...[0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31],
);
const BLOCK_WORDS = 8;
const BLOCK_BYTES = 4 * BLOCK_WORDS;

/** Larger filters are not made: at 33 million keys, reading a page costs less than the memory. */
const FILTER_BYTES_MAX: number = 32 * 1024 * 1024;

/** Returns the size of a filter over so many distinct keys; 0 if it would be too large. */
export function filterBytes(keys: number): number {
  const sizeBytes = BLOCK_BYTES * Math.ceil(keys * BITS_PER_KEY / (8 * BLOCK_BYTES));
  return sizeBytes > FILTER_BYTES_MAX ? 0 : sizeBytes;
}

export class KeyFilter {
  readonly bytes: Buffer;
  readonly #words: Int32Array;

  /** @param bytes see `filterBytes()`; must be aligned to words. */
  constructor(bytes: Buffer) {
    this.bytes = bytes;
    this.#words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  }

  /** Adds the keys of entries. */
  add(entries: BigUint64Array): void {
    const pairs = new Uint32Array(entries.buffer, entries.byteOffset, 2 * entries.length);
    for (let at = 0; at < pairs.length; at += 2) {
      const start = this.#blockOf(pairs[at + 1]!);
      const bits = bitsOf(pairs[at + 1]!, pairs[at]!);
      for (let word = 0; word < BLOCK_WORDS; word++) {
        this.#words[start + word]! |= 1 << (Math.imul(bits, SALT[word]!) >>> 27);
      }
    }
  }

  /**
   * Whether the filter may contain a key; never a false negative.
   * @param high the upper word of an entry of the key.
   * @param low its lower word.
   */
  mayHold(high: number, low: number): boolean {
    const start = this.#blockOf(high);
    const bits = bitsOf(high, low);
    for (let word = 0; word < BLOCK_WORDS; word++) {
      const bit = Math.imul(bits, SALT[word]!) >>> 27;
      if ((this.#words[start + word]! >>> bit & 1) === 0) return false;
    }
    return true;
  }

  #blockOf(high: number): number {
    return Math.floor(high * (this.#words.length / BLOCK_WORDS) / 2 ** 32) * BLOCK_WORDS;
  }
}

/** Returns the lower 32 bits of a hash, which select the bits in a block. */
function bitsOf(high: number, low: number): number {
  return high << 16 | low >>> 16;
}
