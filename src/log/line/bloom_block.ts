/** Blocks of split-block Bloom filters (parquet-format, BloomFilter.md). */

/** The two halves of a hash, unsigned. The high half selects a block, the low half bits in it. */
export interface Hash64 {
  high: number;
  low: number;
}

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
export const BLOOM_BLOCK_BYTES: number = SALT.length * WORD_BYTES;

/** Returns the index of the block, out of `blocks`, that a hash selects. */
export function bloomBlock(blocks: number, { high }: Hash64): number {
  return Math.floor(high * blocks / 2 ** 32);
}

/** Sets one bit in each word of the block at `start`. */
export function addToBlock(bytes: Uint8Array, start: number, hash: Hash64): void {
  for (let word = 0; word < SALT.length; word++) {
    const bit = bitAt(hash, word);
    bytes[start + (bit >>> 3)]! |= 1 << (bit & 7);
  }
}

/** Whether the block at `start` has all bits of a hash set. */
export function blockMayContain(bytes: Uint8Array, start: number, hash: Hash64): boolean {
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
