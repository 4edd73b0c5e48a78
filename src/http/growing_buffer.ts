/**
 * Bytes collected into one piece of memory. Each piece is copied once as it comes, so that no small
 * piece keeps a large buffer alive.
 */
import { Buffer } from "node:buffer";

export class GrowingBuffer {
  #buffer: Buffer;
  #sizeBytes = 0;

  /** Memory that is not filled is not resident: a generous capacity costs little. */
  constructor(capacityBytes: number) {
    this.#buffer = Buffer.allocUnsafeSlow(capacityBytes);
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Appends a copy of `piece`. */
  append(piece: Uint8Array): void {
    const neededBytes = this.#sizeBytes + piece.length;
    if (neededBytes > this.#buffer.length) this.#enlarge(neededBytes);
    this.#buffer.set(piece, this.#sizeBytes);
    this.#sizeBytes = neededBytes;
  }

  /** What was appended, without a copy; not to be appended to afterwards. */
  take(): Buffer {
    return this.#buffer.subarray(0, this.#sizeBytes);
  }

  #enlarge(neededBytes: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(neededBytes, 2 * this.#buffer.length));
    this.#buffer.copy(larger, 0, 0, this.#sizeBytes);
    this.#buffer = larger;
  }
}
