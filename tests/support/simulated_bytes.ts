/** Bytes that grow and shrink; what they were made from is copied only when they change. */
import { Buffer } from "node:buffer";

export class SimulatedBytes {
  #buffer: Buffer;
  #isOwn = false;
  #sizeBytes: number;
  /** A copy of all of it; null when there is none. */
  #snapshot: Uint8Array | null;

  /** @param bytes stay as they are. */
  constructor(bytes: Uint8Array = Buffer.alloc(0)) {
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#sizeBytes = bytes.length;
    this.#snapshot = bytes;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** All of it, to be left as it is: one object until it changes. */
  snapshot(): Uint8Array {
    return this.#snapshot ??= this.slice(0, this.#sizeBytes);
  }

  /** A copy of [start, end); zeros beyond the end. */
  slice(start: number, end: number): Buffer {
    const copy = Buffer.alloc(end - start);
    this.read(copy, start);
    return copy;
  }

  /** Fills `into` from `position`; returns the bytes read. */
  read(into: Uint8Array, position: number): number {
    const start = Math.min(position, this.#sizeBytes);
    const piece = this.#buffer.subarray(start, Math.min(start + into.length, this.#sizeBytes));
    into.set(piece);
    return piece.length;
  }

  write(bytes: Uint8Array, position: number): void {
    this.resize(Math.max(this.#sizeBytes, position + bytes.length));
    this.#own(this.#sizeBytes);
    this.#buffer.set(bytes, position);
  }

  /** Bytes that were never written are zero. */
  resize(sizeBytes: number): void {
    if (sizeBytes === this.#sizeBytes) return;
    this.#own(Math.max(sizeBytes, this.#sizeBytes));
    this.#buffer.fill(
      0,
      Math.min(sizeBytes, this.#sizeBytes),
      Math.max(sizeBytes, this.#sizeBytes),
    );
    this.#sizeBytes = sizeBytes;
  }

  /** A buffer of its own with room for so many bytes, which are at least those that there are. */
  #own(roomBytes: number): void {
    this.#snapshot = null;
    if (this.#isOwn && this.#buffer.length >= roomBytes) return;
    const isLarger = roomBytes > this.#sizeBytes;
    const own = Buffer.alloc(isLarger ? Math.max(roomBytes, 2 * this.#sizeBytes) : roomBytes);
    this.#buffer.copy(own, 0, 0, this.#sizeBytes);
    this.#buffer = own;
    this.#isOwn = true;
  }
}
