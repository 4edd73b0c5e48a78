/**
 * The blocks of the lists in footers that are in memory, the least recently used ones dropped
 * first. One cache serves all segments of a log.
 */
import { LIST_ENTRIES_CACHED_MAX } from "../limits.ts";
import type { ListEntry } from "./segment_list.ts";

/** The entries of a block, or its first key, which counts as one. */
type Block = readonly ListEntry[] | readonly [string | null];

export class ListCache {
  readonly #limitEntries: number;
  /** From the least to the most recently used. */
  readonly #blocks = new Map<string, Block>();
  #entries = 0;

  constructor(limitEntries: number = LIST_ENTRIES_CACHED_MAX) {
    this.#limitEntries = limitEntries;
  }

  /** Number of entries held. */
  get entries(): number {
    return this.#entries;
  }

  /** A block, or a first key, by its own key; read when it is not in memory. */
  async get<Wanted extends Block>(key: string, read: () => Promise<Wanted>): Promise<Wanted> {
    const held = this.#blocks.get(key);
    if (held !== undefined) {
      this.#blocks.delete(key);
      this.#blocks.set(key, held);
      return held as Wanted;
    }
    const block = await read();
    if (!this.#blocks.has(key)) this.#keep(key, block);
    return block;
  }

  #keep(key: string, block: Block): void {
    this.#blocks.set(key, block);
    this.#entries += block.length;
    for (const [oldKey, old] of this.#blocks) {
      if (this.#entries <= this.#limitEntries) return;
      this.#blocks.delete(oldKey);
      this.#entries -= old.length;
    }
  }
}
