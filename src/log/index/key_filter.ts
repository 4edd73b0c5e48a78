/**
 * A Bloom filter over key hashes, in blocks as in `bloom_block.ts`. With 8 bits a key, 1 key in 40
 * that is absent passes. The number of blocks need not be a power of two.
 */
import type { Buffer } from "node:buffer";
import {
  addToBlock,
  blockMayContain,
  BLOOM_BLOCK_BYTES,
  bloomBlock,
  type Hash64,
} from "../line/bloom_block.ts";

const BITS_PER_KEY = 8;
/** Larger filters are not made: at 33 million keys, reading a page costs less than the memory. */
const FILTER_BYTES_MAX: number = 32 * 1024 * 1024;

/** Returns the size of a filter over so many distinct keys; 0 if it would be too large. */
export function filterBytes(keys: number): number {
  const blocks = Math.ceil(keys * BITS_PER_KEY / (8 * BLOOM_BLOCK_BYTES));
  const sizeBytes = BLOOM_BLOCK_BYTES * blocks;
  return sizeBytes > FILTER_BYTES_MAX ? 0 : sizeBytes;
}

export class KeyFilter {
  readonly bytes: Buffer;

  /** @param bytes see `filterBytes()`. */
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Adds the keys of entries. */
  add(entries: BigUint64Array): void {
    const pairs = new Uint32Array(entries.buffer, entries.byteOffset, 2 * entries.length);
    for (let at = 0; at < pairs.length; at += 2) {
      const hash = hashOf(pairs[at + 1]!, pairs[at]!);
      addToBlock(this.bytes, this.#startOf(hash), hash);
    }
  }

  /**
   * Whether the filter may contain a key; never a false negative.
   * @param high the upper word of an entry of the key.
   * @param low its lower word.
   */
  mayHold(high: number, low: number): boolean {
    const hash = hashOf(high, low);
    return blockMayContain(this.bytes, this.#startOf(hash), hash);
  }

  #startOf(hash: Hash64): number {
    return bloomBlock(this.bytes.length / BLOOM_BLOCK_BYTES, hash) * BLOOM_BLOCK_BYTES;
  }
}

/** The lower 32 bits of the 48 of a key's hash select the bits in a block. */
function hashOf(high: number, low: number): Hash64 {
  return { high, low: high << 16 | low >>> 16 };
}
