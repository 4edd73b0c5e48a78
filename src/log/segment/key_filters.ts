/**
 * The filters over the keys of segments that are in memory: those of the newest segments, as many
 * as fit the bound. A key is looked for in all segments, so that what was used last says nothing
 * about what is asked next.
 *
 * They lie in one piece of memory: to ask a hundred filters is to wait for memory a hundred times,
 * and twice as often where each has an object of its own.
 */
import { assert } from "../../assert.ts";
import { keyBlockStart, mayHoldKey } from "./key_filter.ts";
import type { ListedSegment } from "./listed_segment.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";

/**
 * Filters over the keys of segments kept in memory, those of the newest ones: the keys of ten
 * million batches of one event and of the streams in each segment take 57 MiB. Of older segments
 * the writer asks the files, each for every new batch.
 */
const KEY_FILTERS_BYTES_MAX = 60 * 1024 * 1024;

export class KeyFilters {
  readonly #segments: readonly ListedSegment[];
  readonly #limitBytes: number;
  /**
   * Made with the first filter, of the size that it may have: what nobody has written to takes no
   * memory. To grow it would free large memory, and from then on malloc keeps as much unused.
   */
  #memory = new Uint8Array(0);
  /** Where in memory what was taken last ends; gaps of dropped filters are before it. */
  #endBytes = 0;
  /** By the number of the segment: where its filter starts, and its size, 0 for one not held. */
  readonly #starts: number[] = [];
  readonly #sizes: number[] = [];
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
      const isHeld = (this.#sizes[number] ?? 0) > 0;
      if (isHeld ? this.#peek(number, hash) : await this.#ask(number, hash)) return number;
    }
    return -1;
  }

  #peek(number: number, hash: Hash64): boolean {
    const blockStart = this.#starts[number]! + keyBlockStart(this.#sizes[number]!, hash);
    return mayHoldKey(this.#memory, blockStart, hash);
  }

  /** Asks the segment, and holds its filter from now on if there is room. */
  async #ask(number: number, hash: Hash64): Promise<boolean> {
    return await this.#segments[number]!.use(async (opened) => {
      if (!this.#hasRoom(number, opened.metadata.key_filter.bytes)) {
        return await opened.mayHoldKey(hash);
      }
      const filter = await opened.readKeyFilter();
      // Another question may have taken the room meanwhile.
      if (this.#hasRoom(number, filter.length)) this.#hold(number, filter);
      return mayHoldKey(filter, keyBlockStart(filter.length, hash), hash);
    });
  }

  /** Whether there is room for a filter of `bytes`, without those of older segments. */
  #hasRoom(number: number, bytes: number): boolean {
    const olderBytes = this.#sizes.slice(0, number).reduce((sum, size) => sum + size, 0);
    return this.#sizeBytes - olderBytes + bytes <= this.#limitBytes;
  }

  #hold(number: number, filter: Uint8Array): void {
    while (this.#sizes.length <= number) {
      this.#starts.push(0);
      this.#sizes.push(0);
    }
    this.#drop(number);
    for (let oldest = 0; this.#sizeBytes + filter.length > this.#limitBytes; oldest++) {
      this.#drop(oldest);
    }
    this.#makeRoom(filter.length);
    this.#memory.set(filter, this.#endBytes);
    this.#starts[number] = this.#endBytes;
    this.#sizes[number] = filter.length;
    this.#sizeBytes += filter.length;
    this.#endBytes += filter.length;
  }

  #drop(number: number): void {
    this.#sizeBytes -= this.#sizes[number]!;
    this.#sizes[number] = 0;
  }

  /** Makes so many bytes free at the end. */
  #makeRoom(bytes: number): void {
    if (this.#memory.length === 0) this.#memory = new Uint8Array(this.#limitBytes);
    if (this.#endBytes + bytes > this.#memory.length) this.#closeGaps();
    assert(this.#endBytes + bytes <= this.#memory.length, "what is held leaves room for more");
  }

  #closeGaps(): void {
    const held = [...this.#sizes.keys()].filter((number) => this.#sizes[number]! > 0);
    let endBytes = 0;
    for (const number of held.sort((a, b) => this.#starts[a]! - this.#starts[b]!)) {
      const start = this.#starts[number]!;
      this.#memory.copyWithin(endBytes, start, start + this.#sizes[number]!);
      this.#starts[number] = endBytes;
      endBytes += this.#sizes[number]!;
    }
    assert(endBytes === this.#sizeBytes, "the filters held are what memory holds");
    this.#endBytes = endBytes;
  }
}
