/**
 * Memory of the chunks in which the log is read and sent, used again by those who read next: left
 * to the collector, what many large pages have gone through would be many times what is in use.
 *
 * Invariants: memory is given back at most once by who took it and by each that it is shared with,
 * and is used again when the last of them has; what is held never exceeds the limit. It is not
 * cleared: who takes it writes all that it shows to others. What was given back has no bytes any
 * more, so whoever looks at it later sees that, and never what others have written there.
 */
import { Buffer } from "node:buffer";
import { freeMemory } from "../../free_memory.ts";
import { READ_CHUNK_BYTES } from "../../limits.ts";

/** Memory of chunks that is kept for the next ones: 4 MiB. */
export const CHUNKS_KEPT_MAX: number = 16;

/** Memory for such a chunk, or for a follow record of as many bytes and what frames its events. */
export const CHUNK_MEMORY_BYTES: number = READ_CHUNK_BYTES + 4 * 1024;

/** Less is had anew: it costs little. */
const SHARED_BYTES_MIN = CHUNK_MEMORY_BYTES / 4;

export class ChunkMemory {
  /** Each of CHUNK_MEMORY_BYTES. */
  readonly #held: ArrayBuffer[] = [];
  /** Of those that came from here, by how many it has not been given back. */
  readonly #readers = new WeakMap<ArrayBufferLike, number>();

  /** How many chunks are held for those who come. */
  get heldCount(): number {
    return this.#held.length;
  }

  /** Bytes of this number, whatever is in them. */
  take(sizeBytes: number): Buffer {
    if (sizeBytes < SHARED_BYTES_MIN || sizeBytes > CHUNK_MEMORY_BYTES) {
      return Buffer.allocUnsafeSlow(sizeBytes);
    }
    const memory = this.#held.pop() ?? new ArrayBuffer(CHUNK_MEMORY_BYTES);
    this.#readers.set(memory, 1);
    return Buffer.from(memory, 0, sizeBytes);
  }

  /** A copy of bytes. */
  copy(bytes: Uint8Array): Buffer {
    return this.concat([bytes]);
  }

  /** A copy of bytes, those of one part behind those of the other. */
  concat(parts: readonly Uint8Array[]): Buffer {
    const chunk = this.take(parts.reduce((sum, { length }) => sum + length, 0));
    let end = 0;
    for (const part of parts) {
      chunk.set(part, end);
      end += part.length;
    }
    return chunk;
  }

  /**
   * Bytes that are to be kept: a copy where they are a small part of their memory, which is given
   * back and with it `bytes`.
   */
  dense(bytes: Buffer): Buffer {
    if (bytes.length * 2 >= bytes.buffer.byteLength) return bytes;
    const copy = Buffer.allocUnsafeSlow(bytes.length);
    copy.set(bytes);
    this.give(bytes);
    return copy;
  }

  /** So many more will give back a chunk, or a part of it, that somebody still has. */
  share({ buffer }: Uint8Array, readers: number): void {
    const others = this.#readers.get(buffer);
    if (others !== undefined) this.#readers.set(buffer, others + readers);
  }

  /**
   * Takes back the memory of a chunk, or of a part of it; leaves alone what is not from here. When
   * nobody has it any more, each view of it is empty.
   */
  give({ buffer }: Uint8Array): void {
    const readers = this.#readers.get(buffer);
    if (readers === undefined) return;
    if (readers > 1) {
      this.#readers.set(buffer, readers - 1);
      return;
    }
    this.#readers.delete(buffer);
    if (this.#held.length === CHUNKS_KEPT_MAX) freeMemory(buffer);
    // The same bytes under another name: nothing is copied.
    else this.#held.push((buffer as ArrayBuffer).transfer());
  }
}

/** That of this thread. */
export const chunkMemory: ChunkMemory = new ChunkMemory();
