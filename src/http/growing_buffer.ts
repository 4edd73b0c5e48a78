/**
 * Bytes collected as they come, in slabs of one size: no small piece keeps a large buffer alive, a
 * million small ones cost no more than one large one, and the memory of a slab fits the next body.
 */
import { Buffer } from "node:buffer";
import { BODY_SLAB_BYTES } from "../limits.ts";

export class GrowingBuffer {
  readonly #slabs: Buffer[] = [];
  /** Filled bytes of the last slab. */
  #filledBytes = BODY_SLAB_BYTES;
  #sizeBytes = 0;

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

  /** A copy of all that was appended. */
  toBytes(): Buffer {
    return Buffer.concat(this.#slabs, this.#sizeBytes);
  }

  /** Free bytes of the last slab, which is a new one where that was full. */
  #freeBytes(): number {
    if (this.#filledBytes === BODY_SLAB_BYTES) {
      this.#slabs.push(Buffer.allocUnsafeSlow(BODY_SLAB_BYTES));
      this.#filledBytes = 0;
    }
    return BODY_SLAB_BYTES - this.#filledBytes;
  }
}
