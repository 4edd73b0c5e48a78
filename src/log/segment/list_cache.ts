/**
 * The blocks of the lists in footers that are in memory, those that were used lately. One cache
 * serves all segments of a log.
 *
 * Blocks are in two generations: what is used moves to the new one, and when that holds half of the
 * bound the old one goes. A page of streams uses blocks by the thousand, and so most uses change
 * nothing.
 */
import type { ListBlock } from "./segment_list.ts";

/** Entries of such lists that are kept in memory, of all segments together: about 5 MiB. */
const LIST_ENTRIES_CACHED_MAX = 48 * 1024;

/** A block, or its first key, which counts as one entry. */
type Block = Pick<ListBlock, "length">;

export class ListCache {
  readonly #limitEntries: number;
  #new = new Map<string, Block>();
  #old = new Map<string, Block>();
  #newEntries = 0;
  #oldEntries = 0;

  constructor(limitEntries: number = LIST_ENTRIES_CACHED_MAX) {
    this.#limitEntries = limitEntries;
  }

  /** Number of entries held; a little more than the bound at the most. */
  get entries(): number {
    return this.#newEntries + this.#oldEntries;
  }

  /** A block, or a first key, by its own key; read when it is not in memory. */
  async get<Wanted extends Block>(key: string, read: () => Promise<Wanted>): Promise<Wanted> {
    const held = this.#new.get(key) ?? this.#takeOld(key);
    if (held !== undefined) return held as Wanted;
    const block = await read();
    if (!this.#new.has(key)) this.#keep(key, block);
    return block;
  }

  #takeOld(key: string): Block | undefined {
    const block = this.#old.get(key);
    if (block === undefined) return undefined;
    this.#old.delete(key);
    this.#oldEntries -= block.length;
    this.#keep(key, block);
    return block;
  }

  #keep(key: string, block: Block): void {
    this.#new.set(key, block);
    this.#newEntries += block.length;
    if (2 * this.#newEntries < this.#limitEntries) return;
    this.#old = this.#new;
    this.#oldEntries = this.#newEntries;
    this.#new = new Map();
    this.#newEntries = 0;
  }
}
