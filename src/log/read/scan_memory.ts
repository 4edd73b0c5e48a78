/**
 * The memory that one scan reads the log into, reused by later scans: garbage collection of it took
 * a third of a replay.
 *
 * Invariant: memory has one owner, the scan that took it, until it is released. That of an
 * abandoned scan is collected.
 */
import { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";

/** Chunks kept for the next scans: 4 MiB. */
const SPARE_CHUNKS_MAX = 16;

/** Smaller buffers are cheap to allocate. */
const POOLED_BYTES_MIN = READ_CHUNK_BYTES / 4;

const spare: Buffer[] = [];

export class ScanMemory {
  #memory: Buffer | null = null;

  /** Uninitialized bytes; they may overlap those taken before. */
  take(sizeBytes: number): Buffer {
    if (this.#memory === null || this.#memory.length < sizeBytes) {
      this.release();
      this.#memory = sizeBytes < POOLED_BYTES_MIN || sizeBytes > READ_CHUNK_BYTES
        ? Buffer.allocUnsafeSlow(sizeBytes)
        : spare.pop() ?? Buffer.allocUnsafeSlow(READ_CHUNK_BYTES);
    }
    return this.#memory.subarray(0, sizeBytes);
  }

  /** Returns the memory; nobody may read it any more. */
  release(): void {
    const memory = this.#memory;
    this.#memory = null;
    if (memory?.length === READ_CHUNK_BYTES && spare.length < SPARE_CHUNKS_MAX) spare.push(memory);
  }
}
