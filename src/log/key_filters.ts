/**
 * The filters over the keys of segments that are in memory: those of the newest segments, as many
 * as fit the bound. A key is looked for in all segments, so that what was used last says nothing
 * about what is asked next.
 */
import { KEY_FILTERS_BYTES_MAX } from "../limits.ts";
import { keyBlockStart, mayHoldKey } from "./key_filter.ts";
import type { ListedSegment } from "./listed_segment.ts";
import type { Hash64 } from "./xxhash64.ts";

export class KeyFilters {
  readonly #limitBytes: number;
  readonly #held = new Map<ListedSegment, Uint8Array>();
  #sizeBytes = 0;

  constructor(limitBytes: number = KEY_FILTERS_BYTES_MAX) {
    this.#limitBytes = limitBytes;
  }

  /** Bytes of the filters held. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Whether a segment may hold the key of a hash; null when its filter is not in memory. */
  peek(segment: ListedSegment, hash: Hash64): boolean | null {
    const filter = this.#held.get(segment);
    return filter === undefined
      ? null
      : mayHoldKey(filter, keyBlockStart(filter.length, hash), hash);
  }

  /** The same, read where it is not in memory. @throws {CorruptLogError} */
  async ask(segment: ListedSegment, hash: Hash64): Promise<boolean> {
    return this.peek(segment, hash) ?? await segment.use(async (opened) => {
      const { bytes } = opened.metadata.key_filter;
      if (!this.#makeRoom(segment, bytes)) return await opened.mayHoldKey(hash);
      this.#hold(segment, await opened.readKeyFilter());
      return this.peek(segment, hash) ?? true;
    });
  }

  #hold(segment: ListedSegment, filter: Uint8Array): void {
    if (this.#held.has(segment)) return;
    this.#held.set(segment, filter);
    this.#sizeBytes += filter.length;
  }

  /** Drops filters of older segments, if that is enough for one of `bytes`. */
  #makeRoom(segment: ListedSegment, bytes: number): boolean {
    let freeBytes = this.#limitBytes - this.#sizeBytes;
    if (freeBytes >= bytes) return true;
    const older = [...this.#held.keys()].filter((held) => held.lastEventId < segment.lastEventId)
      .sort((a, b) => a.lastEventId < b.lastEventId ? -1 : 1);
    const dropped = [];
    for (const held of older) {
      if (freeBytes >= bytes) break;
      freeBytes += this.#held.get(held)!.length;
      dropped.push(held);
    }
    if (freeBytes < bytes) return false;
    for (const held of dropped) {
      this.#sizeBytes -= this.#held.get(held)!.length;
      this.#held.delete(held);
    }
    return true;
  }
}
