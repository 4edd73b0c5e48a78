/**
 * The memory that one scan reads the log into, chunk after chunk. What ended scans leave is kept
 * for the next ones: left to the collector, it takes a third of the time of a replay.
 *
 * Invariant: memory has one owner, the scan that took it, until that releases it. A scan that is
 * abandoned does not, and its memory is collected.
 */
import { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";

/** Chunks kept for the next scans: 4 MiB. */
const SPARE_CHUNKS_MAX = 16;

/** Less is allocated each time: it costs little. */
const POOLED_BYTES_MIN = READ_CHUNK_BYTES / 4;

const spare: Buffer[] = [];

export class ScanMemory {
  #memory: Buffer | null = null;

  /** This many bytes, uninitialized. What was taken before is overwritten. */
  take(sizeBytes: number): Buffer {
    if (this.#memory === null || this.#memory.length < sizeBytes) {
      this.release();
      this.#memory = sizeBytes < POOLED_BYTES_MIN || sizeBytes > READ_CHUNK_BYTES
        ? Buffer.allocUnsafeSlow(sizeBytes)
        : spare.pop() ?? Buffer.allocUnsafeSlow(READ_CHUNK_BYTES);
    }
    return this.#memory.subarray(0, sizeBytes);
  }

  /** Nobody reads what was taken any more. */
  release(): void {
    const memory = this.#memory;
    this.#memory = null;
    if (memory?.length === READ_CHUNK_BYTES && spare.length < SPARE_CHUNKS_MAX) spare.push(memory);
  }
}
