/**
 * The filter of a segment over all keys by which the writer looks for something in sealed history:
 * batches, sources and streams. A split-block Bloom filter as Parquet has them (parquet-format,
 * BloomFilter.md), but one for the whole segment and of any number of blocks, so that it is as
 * small as it can be: a log has them in memory by the hundred. A question touches one block, so it
 * can also be asked of the file.
 */
import { Buffer } from "node:buffer";
import { bitOf, WORDS_PER_BLOCK } from "../parquet/bloom_filter.ts";
import { FULL_SPEED, type Pace } from "../sealing/pace.ts";
import { type Hash64, xxhash64 } from "../parquet/xxhash64.ts";

/** What one question reads. */
export const KEY_FILTER_BLOCK_BYTES = 32;
/** Of keys that are not there, 1 in 6,000 passes: for 110 segments, one in fifty. */
const BITS_PER_KEY = 24;

/** Hash of the identity of a batch. No source holds a space, so that keys are unambiguous. */
export function batchKeyHash(source: string, batchId: string): Hash64 {
  return xxhash64(Buffer.from(`batch ${source} ${batchId}`));
}

export function sourceKeyHash(source: string): Hash64 {
  return xxhash64(Buffer.from(`source ${source}`));
}

export function streamKeyHash(source: string, stream: string): Hash64 {
  return xxhash64(Buffer.from(`stream ${source} ${stream}`));
}

/** Size of the filter of so many keys. */
export function keyFilterBytes(keys: number): number {
  const bits = 8 * KEY_FILTER_BLOCK_BYTES;
  return KEY_FILTER_BLOCK_BYTES * Math.max(1, Math.ceil(keys * BITS_PER_KEY / bits));
}

/** Collects the keys of a segment, a few bytes of memory for each. */
export class KeyHashes {
  /** The upper and the lower half of each hash. */
  #halves = new Uint32Array(1024);
  #count = 0;

  add({ high, low }: Hash64): void {
    if (2 * this.#count === this.#halves.length) {
      const halves = new Uint32Array(4 * this.#count);
      halves.set(this.#halves);
      this.#halves = halves;
    }
    this.#halves[2 * this.#count] = high;
    this.#halves[2 * this.#count + 1] = low;
    this.#count += 1;
  }

  /** Their filter, as it is in the file. */
  filter(pace: Pace = FULL_SPEED): Uint8Array {
    const filter = new Uint8Array(keyFilterBytes(this.#count));
    for (let number = 0; number < this.#count; number++) {
      pace();
      const hash = { high: this.#halves[2 * number]!, low: this.#halves[2 * number + 1]! };
      const start = keyBlockStart(filter.length, hash);
      for (let word = 0; word < WORDS_PER_BLOCK; word++) {
        const bit = bitOf(hash, word);
        filter[byteAt(start, word, bit)]! |= 1 << (bit & 7);
      }
    }
    return filter;
  }
}

/** Where in a filter of that size the block of a key starts. */
export function keyBlockStart(filterBytes: number, { high }: Hash64): number {
  const blocks = filterBytes / KEY_FILTER_BLOCK_BYTES;
  return Math.floor(high * blocks / 2 ** 32) * KEY_FILTER_BLOCK_BYTES;
}

/** Whether the key of a hash may be there, by its block; never false for one that is. */
export function mayHoldKey(filter: Uint8Array, blockStart: number, hash: Hash64): boolean {
  for (let word = 0; word < WORDS_PER_BLOCK; word++) {
    const bit = bitOf(hash, word);
    if ((filter[byteAt(blockStart, word, bit)]! >>> (bit & 7) & 1) === 0) return false;
  }
  return true;
}

/** Words are stored with their lowest byte first. */
function byteAt(blockStart: number, word: number, bit: number): number {
  return blockStart + 4 * word + (bit >>> 3);
}
