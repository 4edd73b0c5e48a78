/**
 * The pooled read buffer for a scan. Without it, garbage collection would take a third of the time.
 *
 * Invariant: a buffer belongs to one scan until released. The buffer of an abandoned scan is left
 * to the garbage collector.
 */
import { Buffer } from "node:buffer";
import { freeOwnMemory } from "../../free_memory.ts";
import { READ_CHUNK_BYTES } from "../../limits.ts";

/** Maximum number of pooled chunks, 4 MiB in total. */
const SPARE_CHUNKS_MAX = 16;

/** Smaller buffers are not pooled, since they are cheap to allocate. */
const POOLED_BYTES_MIN = READ_CHUNK_BYTES / 4;

const spare: Buffer[] = [];

export class ScanMemory {
  #memory: Buffer | null = null;

  /** Returns uninitialized bytes, which may overlap those from an earlier call. */
  take(sizeBytes: number): Buffer {
    if (this.#memory === null || this.#memory.length < sizeBytes) {
      this.release();
      this.#memory = sizeBytes < POOLED_BYTES_MIN || sizeBytes > READ_CHUNK_BYTES
        ? Buffer.allocUnsafeSlow(sizeBytes)
        : spare.pop() ?? Buffer.allocUnsafeSlow(READ_CHUNK_BYTES);
    }
    return this.#memory.subarray(0, sizeBytes);
  }

  /** Returns the buffer to the pool, or frees a large one; it must not be used afterwards. */
  release(): void {
    const memory = this.#memory;
    this.#memory = null;
    if (memory === null) return;
    if (memory.length > READ_CHUNK_BYTES) freeOwnMemory(memory);
    else if (memory.length === READ_CHUNK_BYTES && spare.length < SPARE_CHUNKS_MAX) {
      spare.push(memory);
    }
  }
}
