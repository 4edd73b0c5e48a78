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
  readonly #segments: readonly ListedSegment[];
  readonly #limitBytes: number;
  /** By the number of the segment; null where it is not in memory. */
  readonly #held: (Uint8Array | null)[] = [];
  #sizeBytes = 0;

  /** @param segments from oldest to newest; grows at its end. */
  constructor(segments: readonly ListedSegment[], limitBytes: number = KEY_FILTERS_BYTES_MAX) {
    this.#segments = segments;
    this.#limitBytes = limitBytes;
  }

  /** Bytes of the filters held. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /**
   * Number of the newest of the segments [from, to) that may hold the key of a hash; -1 when none
   * does. A new batch asks them all, so that there is no promise for each.
   * @throws {CorruptLogError}
   */
  async newest(hash: Hash64, from: number, to: number): Promise<number> {
    for (let number = to - 1; number >= from; number--) {
      const filter = this.#held[number] ?? null;
      const mayHold = filter === null ? await this.#ask(number, hash) : passes(filter, hash);
      if (mayHold) return number;
    }
    return -1;
  }

  /** Asks the segment, and holds its filter from now on if there is room. */
  async #ask(number: number, hash: Hash64): Promise<boolean> {
    return await this.#segments[number]!.use(async (opened) => {
      if (!this.#makeRoom(number, opened.metadata.key_filter.bytes)) {
        return await opened.mayHoldKey(hash);
      }
      const filter = await opened.readKeyFilter();
      this.#hold(number, filter);
      return passes(filter, hash);
    });
  }

  #hold(number: number, filter: Uint8Array): void {
    while (this.#held.length <= number) this.#held.push(null);
    this.#drop(number);
    this.#held[number] = filter;
    this.#sizeBytes += filter.length;
  }

  /** Drops filters of older segments, if that is enough for one of `bytes`. */
  #makeRoom(number: number, bytes: number): boolean {
    const older = this.#held.slice(0, number);
    const olderBytes = older.reduce((sum, filter) => sum + (filter?.length ?? 0), 0);
    if (this.#sizeBytes - olderBytes + bytes > this.#limitBytes) return false;
    for (let oldest = 0; this.#sizeBytes + bytes > this.#limitBytes; oldest++) this.#drop(oldest);
    return true;
  }

  #drop(number: number): void {
    this.#sizeBytes -= this.#held[number]?.length ?? 0;
    this.#held[number] = null;
  }
}

function passes(filter: Uint8Array, hash: Hash64): boolean {
  return mayHoldKey(filter, keyBlockStart(filter.length, hash), hash);
}
