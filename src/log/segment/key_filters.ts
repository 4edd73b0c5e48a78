/**
 * The filters over the keys of segments that are in memory: those of the newest segments, as many
 * as fit the bound. A key is looked for in all segments, so that what was used last says nothing
 * about what is asked next.
 */
import { mayHoldKey } from "./key_filter.ts";
import type { ListedSegment } from "./listed_segment.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";
import type { Segment } from "./segment_reader.ts";

/**
 * Filters over the keys of segments kept in memory, those of the newest ones: the keys of ten
 * million batches of one event and of the streams in each segment take 57 MiB. Of older segments
 * the writer asks the files, each for every new batch.
 */
const KEY_FILTERS_BYTES_MAX = 60 * 1024 * 1024;

export class KeyFilters {
  readonly #segments: readonly ListedSegment[];
  readonly #limitBytes: number;
  /** By the number of the segment. */
  readonly #held: (Uint8Array | undefined)[] = [];

  /** @param segments from oldest to newest; grows at its end. */
  constructor(segments: readonly ListedSegment[], limitBytes: number = KEY_FILTERS_BYTES_MAX) {
    this.#segments = segments;
    this.#limitBytes = limitBytes;
  }

  /** Bytes of the filters held. */
  get sizeBytes(): number {
    return this.#sizeFrom(0);
  }

  /**
   * Number of the newest of the segments [from, to) that may hold the key of a hash; -1 when none
   * does. A new batch asks them all, so that there is no promise for each.
   * @throws {CorruptLogError}
   */
  async newest(hash: Hash64, from: number, to: number): Promise<number> {
    for (let number = to - 1; number >= from; number--) {
      const filter = this.#held[number];
      const mayHold = filter === undefined
        ? await this.#ask(number, hash)
        : mayHoldKey(filter, hash);
      if (mayHold) return number;
    }
    return -1;
  }

  /** Asks the segment, and holds its filter from now on if there is room. */
  async #ask(number: number, hash: Hash64): Promise<boolean> {
    return await this.#segments[number]!.use(async (opened) => {
      const sizeBytes = opened.metadata.key_filter.bytes;
      if (!this.#hasRoom(number, sizeBytes)) return await opened.mayHoldKey(hash);
      const filter = await readWhole(opened);
      // A damaged page refuses its own keys alone.
      if (filter === null) return await opened.mayHoldKey(hash);
      // Another question may have taken the room meanwhile.
      if (this.#hasRoom(number, sizeBytes)) this.#hold(number, filter);
      return mayHoldKey(filter, hash);
    });
  }

  /** Whether there is room for a filter of `bytes`, without those of older segments. */
  #hasRoom(number: number, bytes: number): boolean {
    return this.#sizeFrom(number) + bytes <= this.#limitBytes;
  }

  #hold(number: number, filter: Uint8Array): void {
    this.#held[number] = filter;
    for (let oldest = 0; this.sizeBytes > this.#limitBytes; oldest++) {
      this.#held[oldest] = undefined;
    }
  }

  #sizeFrom(first: number): number {
    let bytes = 0;
    for (const filter of this.#held.slice(first)) bytes += filter?.length ?? 0;
    return bytes;
  }
}

/** The filter of a segment; null where a page of it is damaged. */
async function readWhole(segment: Segment): Promise<Uint8Array | null> {
  try {
    return await segment.readKeyFilter();
  } catch (error) {
    if (error instanceof SegmentError) return null;
    throw error;
  }
}
