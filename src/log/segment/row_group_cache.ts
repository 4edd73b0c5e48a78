/**
 * The lines in recently read row groups. Row groups are decoded one at a time, so decoding needs
 * the same memory for any number of readers.
 */
import type { Buffer } from "node:buffer";
import { setImmediate } from "node:timers";
import { freeOwnMemory } from "../../free_memory.ts";
import { LruCache } from "../../lru_cache.ts";
import { INLINE_DECODER, type RowGroupDecoder } from "./row_group_decoder.ts";

/** Limit on cached lines: twenty typical row groups. */
const ROW_GROUP_CACHE_BYTES_MAX: number = 32 * 1024 * 1024;

export class RowGroupCache {
  readonly decoder: RowGroupDecoder;
  readonly #lines = new LruCache<Buffer>(
    ROW_GROUP_CACHE_BYTES_MAX,
    ({ buffer }) => buffer.byteLength,
    // Whoever has waited for the lines uses them in this turn of the event loop.
    (lines) => void setImmediate(() => freeOwnMemory(lines)),
  );
  /** Settles when the last requested decode settles. */
  #decoding: Promise<unknown> = Promise.resolve();
  /** Number of decodes that have not settled. */
  #decodes = 0;

  /** @param decoder decodes row groups into lines; closed by the caller. */
  constructor(decoder: RowGroupDecoder = INLINE_DECODER) {
    this.decoder = decoder;
  }

  /** Returns lines that are read-only, and valid in this turn of the event loop. */
  load(key: string, decode: () => Promise<Buffer>): Promise<Buffer> {
    return this.#lines.load(key, () => this.decodeInTurn(decode));
  }

  /** Decodes a row group ahead of its use. While others are decoded, readers take turns instead. */
  prefetch(key: string, decode: () => Promise<Buffer>): void {
    if (this.#decodes > 0) return;
    // The reader that needs the lines retries, and gets the error.
    this.load(key, decode).catch(() => {});
  }

  /** Runs an uncached decode once all previously requested decodes have settled. */
  decodeInTurn(decode: () => Promise<Buffer>): Promise<Buffer> {
    this.#decodes += 1;
    const decoded = this.#decoding.then(decode).finally(() => this.#decodes -= 1);
    // The caller gets this decode's error; the next decode must not fail because of it.
    this.#decoding = decoded.catch(() => {});
    return decoded;
  }
}
