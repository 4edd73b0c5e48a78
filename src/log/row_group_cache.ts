/**
 * The decoded row groups that are in memory, the least recently used ones dropped first: a reader
 * that pages through sealed history decodes each row group once, and readers at the same place
 * share it. What is in here is shared, so nobody changes it.
 */
import type { Buffer } from "node:buffer";
import { ROW_GROUP_CACHE_BYTES_MAX } from "../limits.ts";

interface Entry {
  lines: Promise<Buffer>;
  /** 0 while it is being decoded. */
  bytes: number;
}

export class RowGroupCache {
  readonly #limitBytes: number;
  /** From the least to the most recently used. */
  readonly #entries = new Map<string, Entry>();
  #sizeBytes = 0;

  constructor(limitBytes: number = ROW_GROUP_CACHE_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** The lines of a row group; `decode` is called when they are not at hand. */
  get(key: string, decode: () => Promise<Buffer>): Promise<Buffer> {
    const held = this.#entries.get(key);
    if (held !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, held);
      return held.lines;
    }
    const entry: Entry = { lines: decode(), bytes: 0 };
    this.#entries.set(key, entry);
    entry.lines.then(
      (lines) => this.#keep(entry, lines.length),
      // Whoever asked for it is told; the next one tries again.
      () => this.#entries.delete(key),
    );
    return entry.lines;
  }

  #keep(entry: Entry, bytes: number): void {
    entry.bytes = bytes;
    this.#sizeBytes += bytes;
    for (const [oldKey, old] of this.#entries) {
      if (this.#sizeBytes <= this.#limitBytes) return;
      if (old.bytes === 0) continue;
      this.#entries.delete(oldKey);
      this.#sizeBytes -= old.bytes;
    }
  }
}
