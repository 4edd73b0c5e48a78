/**
 * Reads files that are likely in the page cache, such as the tail: on this thread, which costs less
 * than the hops to the thread pool. A pooled read after every BLOCKING_READ_BYTES_MAX lets other
 * clients run. After a read that took too long, which came from the disk, reads are pooled for a
 * while.
 */
import type { FileReader } from "../storage/storage.ts";

/** Reading this much, and searching it, takes about a millisecond. */
export const BLOCKING_READ_BYTES_MAX: number = 1024 * 1024;
/** Longest time of a read of a few hundred KiB from the page cache. */
const CACHED_READ_MS = 1;
/** Pooled reads after a slow one. */
const POOLED_READS_MIN = 16;

export class CachedReads {
  /** Bytes read on this thread since the last pooled read. */
  #blockingBytes = 0;
  /** Reads to pool before one blocks again. */
  #pooledReads = 0;

  /** See `StorageFile.read()`. */
  async read(file: FileReader, into: Uint8Array, position: number): Promise<number> {
    if (this.#pooledReads > 0 || this.#blockingBytes + into.length > BLOCKING_READ_BYTES_MAX) {
      const readBytes = await file.read(into, position);
      this.#pooledReads = Math.max(0, this.#pooledReads - 1);
      this.#blockingBytes = 0;
      return readBytes;
    }
    this.#blockingBytes += into.length;
    const startMs = performance.now();
    const readBytes = await file.read(into, position, "blocking");
    if (performance.now() - startMs > CACHED_READ_MS) this.#pooledReads = POOLED_READS_MIN;
    return readBytes;
  }
}
