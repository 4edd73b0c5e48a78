/**
 * Bytes collected as they come, in memory that is there for all of them, or in slabs of one size:
 * no small piece keeps a large buffer alive, a million small ones cost no more than one large one,
 * and the memory of a slab fits the next body.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import type { BufferPool } from "../event/buffer_pool.ts";
import { freeOwnMemory } from "../free_memory.ts";

/** A body that does not come at once is collected in pieces of memory of this size. */
export const BODY_SLAB_BYTES: number = 64 * 1024;

export class GrowingBuffer {
  readonly #slabs: Buffer[] = [];
  /** Filled bytes of the last slab. */
  #filledBytes = 0;
  #sizeBytes = 0;
  /** Whether the first slab is memory for all. */
  readonly #isWhole: boolean;

  /** @param whole memory for all bytes that will come, if there is such. */
  constructor(whole: ArrayBuffer | null = null) {
    this.#isWhole = whole !== null;
    if (whole !== null) this.#slabs.push(Buffer.from(whole));
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Appends a copy of `piece`. */
  append(piece: Uint8Array): void {
    for (let start = 0; start < piece.length;) {
      const part = piece.subarray(start, start + this.#freeBytes());
      this.#slabs.at(-1)!.set(part, this.#filledBytes);
      this.#filledBytes += part.length;
      start += part.length;
    }
    this.#sizeBytes += piece.length;
  }

  /**
   * All that was appended, in the memory for it or in such that is taken now. To be called once.
   */
  toBytes(memory: BufferPool): Buffer {
    if (this.#isWhole) {
      assert(this.#slabs.length === 1, "memory for all bytes holds all of them");
      return this.#slabs[0]!.subarray(0, this.#sizeBytes);
    }
    const bytes = Buffer.from(memory.take(this.#sizeBytes), 0, this.#sizeBytes);
    let start = 0;
    for (const slab of this.#slabs) {
      bytes.set(slab.subarray(0, this.#sizeBytes - start), start);
      start += slab.length;
      freeOwnMemory(slab);
    }
    return bytes;
  }

  /** Free bytes of the last slab, which is a new one where that was full. */
  #freeBytes(): number {
    const freeBytes = (this.#slabs.at(-1)?.length ?? 0) - this.#filledBytes;
    if (freeBytes > 0) return freeBytes;
    this.#slabs.push(Buffer.allocUnsafeSlow(BODY_SLAB_BYTES));
    this.#filledBytes = 0;
    return BODY_SLAB_BYTES;
  }
}
