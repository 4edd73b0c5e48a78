/**
 * Memory of the chunks in which the log is read, used again by those who read next: left to the
 * collector, what many large pages have gone through would be many times what is in use.
 *
 * Invariants: memory is given back by the one reader that it was taken for, at most once, when
 * nobody reads it any more; what is held never exceeds the limit. It is not cleared: who takes it
 * writes all that it shows to others.
 */
import { Buffer } from "node:buffer";
import { CHUNKS_KEPT_MAX, READ_CHUNK_BYTES } from "../limits.ts";

/** Less is had anew: it costs little. */
const SHARED_BYTES_MIN = READ_CHUNK_BYTES / 4;

export class ChunkMemory {
  /** Each of READ_CHUNK_BYTES. */
  readonly #held: ArrayBuffer[] = [];
  /** Of those that came from here, what has not come back. */
  readonly #taken = new WeakSet<ArrayBufferLike>();

  /** How many chunks are held for those who come. */
  get heldCount(): number {
    return this.#held.length;
  }

  /** Bytes of this number, whatever is in them. */
  take(sizeBytes: number): Buffer {
    if (sizeBytes < SHARED_BYTES_MIN || sizeBytes > READ_CHUNK_BYTES) {
      return Buffer.allocUnsafeSlow(sizeBytes);
    }
    const memory = this.#held.pop() ?? new ArrayBuffer(READ_CHUNK_BYTES);
    this.#taken.add(memory);
    return Buffer.from(memory, 0, sizeBytes);
  }

  /** A copy of bytes. */
  copy(bytes: Uint8Array): Buffer {
    const chunk = this.take(bytes.length);
    chunk.set(bytes);
    return chunk;
  }

  /** Takes back the memory of a chunk, or of a part of it; leaves alone what is not from here. */
  give({ buffer }: Uint8Array): void {
    if (!this.#taken.delete(buffer) || this.#held.length === CHUNKS_KEPT_MAX) return;
    this.#held.push(buffer as ArrayBuffer);
  }
}

/** That of this thread. */
export const chunkMemory: ChunkMemory = new ChunkMemory();
