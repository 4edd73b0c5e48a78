/**
 * Split-block Bloom filters (parquet-format, BloomFilter.md) over 64-bit hashes of keys. The upper
 * word of a hash selects a block, whose number need not be a power of two. A filter with fewer bits
 * for each key sets fewer of them, each in a larger part of the block.
 */
import type { Buffer } from "node:buffer";

/** Multipliers for the parts of a block. */
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
export const KEY_PARTS_MAX: number = SALT.length;
const BLOCK_BITS = 8 * FILTER_BLOCK_BYTES;

export class KeyFilter {
  readonly bytes: Buffer;
  /** Bits that a key sets. */
  readonly #parts: number;
  /** Bits of a hash that are dropped to select one in a part of a block. */
  readonly #shift: number;

  /** @param bytes whole blocks. @param keys how many it has room for; default: 8 bits for each. */
  constructor(bytes: Buffer, keys: number = bytes.length) {
    this.bytes = bytes;
    this.#parts = keyParts(8 * bytes.length / keys);
    this.#shift = 32 - Math.log2(BLOCK_BITS / this.#parts);
  }

  add(high: number, low: number): void {
    const start = this.#blockStart(high);
    for (let part = 0; part < this.#parts; part++) {
      const bit = this.#bitAt(high, low, part);
      this.bytes[start + (bit >>> 3)]! |= 1 << (bit & 7);
    }
  }

  /** Whether the filter may contain a key; never a false negative. */
  mayHold(high: number, low: number): boolean {
    const start = this.#blockStart(high);
    for (let part = 0; part < this.#parts; part++) {
      const bit = this.#bitAt(high, low, part);
      if ((this.bytes[start + (bit >>> 3)]! >>> (bit & 7) & 1) === 0) return false;
    }
    return true;
  }

  #blockStart(high: number): number {
    const blocks = this.bytes.length / FILTER_BLOCK_BYTES;
    return Math.floor(high * blocks / 2 ** 32) * FILTER_BLOCK_BYTES;
  }

  /**
   * Returns the index, within a block, of the bit that a hash sets in a part. Uses the middle 32
   * bits of the hash, since the entries of an index have no more than its upper 48.
   */
  #bitAt(high: number, low: number, part: number): number {
    const middle = high << 16 | low >>> 16;
    const partBits = BLOCK_BITS / this.#parts;
    return partBits * part + (Math.imul(middle, SALT[part]!) >>> this.#shift);
  }
}

/** Returns how many bits to set for a key: 8, 4, 2 or 1, so that the fewest absent keys pass. */
export function keyParts(bitsPerKey: number): number {
  let parts = KEY_PARTS_MAX;
  while (parts > 1 && bitsPerKey < parts) parts /= 2;
  return parts;
}
