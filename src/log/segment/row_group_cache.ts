/**
 * What is in memory of row groups beside their lines (`part_cache.ts`), the least recently used
 * first to be dropped. Who asks for what is being read waits for the same read. What is in here is
 * shared, so nobody changes it.
 */
import type { Buffer } from "node:buffer";
import { ROW_GROUP_CACHE_BYTES_MAX } from "../../limits.ts";

interface Entry<Content> {
  content: Promise<Content>;
  /** 0 while it is being decoded. */
  bytes: number;
}

export class RowGroupCache<Content extends Uint8Array | Uint16Array = Buffer> {
  readonly #limitBytes: number;
  /** From the least to the most recently used. */
  readonly #entries = new Map<string, Entry<Content>>();
  #sizeBytes = 0;

  constructor(limitBytes: number = ROW_GROUP_CACHE_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** The content of a row group; `decode` is called when it is not at hand. */
  get(key: string, decode: () => Promise<Content>): Promise<Content> {
    const held = this.#entries.get(key);
    if (held !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, held);
      return held.content;
    }
    const entry: Entry<Content> = { content: decode(), bytes: 0 };
    this.#entries.set(key, entry);
    entry.content.then(
      ({ byteLength }) => this.#keep(entry, byteLength),
      // Whoever asked for it is told; the next one tries again.
      () => this.#entries.delete(key),
    );
    return entry.content;
  }

  #keep(entry: Entry<Content>, bytes: number): void {
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
