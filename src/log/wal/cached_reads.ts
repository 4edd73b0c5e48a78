/**
 * Reads files that are likely in the page cache, such as the tail. A blocking read of cached bytes
 * costs less than a round trip to the thread pool. After BLOCKING_READ_BYTES_MAX, one pooled read
 * lets other clients run. After slow reads, which came from disk, the next ones are pooled.
 */
import { type Maybe, whenKnown } from "../../maybe.ts";
import type { FileReader } from "../storage/storage.ts";

/** Reading and searching this many cached bytes takes about a millisecond. */
export const BLOCKING_READ_BYTES_MAX: number = 1024 * 1024;
/** Maximum duration of a read from the page cache, which is 4 us for a page, most of the time. */
const CACHED_READ_MS = { base: 0.05, perMiB: 2 };
/** Time lost in consecutive slow reads before the next ones are pooled. */
const LOST_MS_MAX = 0.3;
/** Number of reads that are pooled after slow ones. */
const POOLED_READS_MIN = 16;

export class CachedReads {
  /** Bytes read on this thread since the last pooled read. */
  #blockingBytes = 0;
  /** Time lost in slow reads since the last fast one. */
  #lostMs = 0;
  /** Number of reads that are still to be pooled. */
  #pooledReads = 0;

  /** See `StorageFile.read()`. */
  read(file: FileReader, into: Uint8Array, position: number): Maybe<number> {
    if (this.#pooledReads > 0 || this.#blockingBytes + into.length > BLOCKING_READ_BYTES_MAX) {
      return whenKnown(file.read(into, position), (readBytes) => {
        this.#pooledReads = Math.max(0, this.#pooledReads - 1);
        this.#blockingBytes = 0;
        return readBytes;
      });
    }
    this.#blockingBytes += into.length;
    const startMs = performance.now();
    const reading = file.read(into, position, "blocking");
    const cachedMs = CACHED_READ_MS.base + CACHED_READ_MS.perMiB * into.length / 2 ** 20;
    const lostMs = performance.now() - startMs - cachedMs;
    this.#lostMs = lostMs > 0 ? this.#lostMs + lostMs : 0;
    if (this.#lostMs > LOST_MS_MAX) this.#pooledReads = POOLED_READS_MIN;
    return reading;
  }
}
