/**
 * Split-block Bloom filters (parquet-format, BloomFilter.md) over 64-bit hashes of keys. The upper
 * word of a hash selects a block, whose number need not be a power of two.
 */
import type { Buffer } from "node:buffer";

/** Multipliers for the eight words of a block. */
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
export const FILTER_BLOCK_BYTES: number = SALT.length * WORD_BYTES;

export class KeyFilter {
  readonly bytes: Buffer;

  /** @param bytes whole blocks. */
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  add(high: number, low: number): void {
    const start = this.#blockStart(high);
    for (let word = 0; word < SALT.length; word++) {
      const bit = bitAt(high, low, word);
      this.bytes[start + (bit >>> 3)]! |= 1 << (bit & 7);
    }
  }

  /** Whether the filter may contain a key; never a false negative. */
  mayHold(high: number, low: number): boolean {
    const start = this.#blockStart(high);
    for (let word = 0; word < SALT.length; word++) {
      const bit = bitAt(high, low, word);
      if ((this.bytes[start + (bit >>> 3)]! >>> (bit & 7) & 1) === 0) return false;
    }
    return true;
  }

  #blockStart(high: number): number {
    const blocks = this.bytes.length / FILTER_BLOCK_BYTES;
    return Math.floor(high * blocks / 2 ** 32) * FILTER_BLOCK_BYTES;
  }
}

/**
 * Returns the index, within a block, of the bit that a hash sets in word number `word`. Uses the
 * middle 32 bits of the hash, since the entries of an index have no more than its upper 48.
 */
function bitAt(high: number, low: number, word: number): number {
  const middle = high << 16 | low >>> 16;
  return 8 * WORD_BYTES * word + (Math.imul(middle, SALT[word]!) >>> 27);
}
