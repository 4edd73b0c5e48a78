/**
 * Last events of sources or streams in segments, looked up from the newest segment back; the latest
 * answers are kept. A segment that is added later is asked when its key is next asked for.
 */
import type { KeyFilters } from "./key_filters.ts";
import type { ListedSegment } from "./listed_segment.ts";
import { findEntry, type ListName } from "./segment_list.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";

/** Last events of sealed sources, and of sealed streams, kept in memory: about 4 MiB each. */
const FRONTIERS_CACHED_MAX = 16 * 1024;

interface Known {
  /** Null when none of the segments has it. */
  lastEventId: string | null;
  /** How many segments, from the oldest on, that was found in. */
  segments: number;
}

export class SealedFrontiers {
  readonly #name: ListName;
  readonly #segments: readonly ListedSegment[];
  readonly #filters: KeyFilters;
  readonly #limit: number;
  /** By key, from the least to the most recently used. */
  readonly #known = new Map<string, Known>();

  /** @param segments from oldest to newest; grows at its end. */
  constructor(
    name: ListName,
    segments: readonly ListedSegment[],
    filters: KeyFilters,
    limit: number = FRONTIERS_CACHED_MAX,
  ) {
    this.#name = name;
    this.#segments = segments;
    this.#filters = filters;
    this.#limit = limit;
  }

  /** Last event of a key with that hash; null when it has none. @throws {CorruptLogError} */
  async find(key: string, hash: Hash64): Promise<string | null> {
    const known = this.#known.get(key);
    const segments = this.#segments.length;
    const lastEventId = await this.#search(key, hash, known?.segments ?? 0, segments) ??
      known?.lastEventId ?? null;
    this.#known.delete(key);
    this.#known.set(key, { lastEventId, segments });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= this.#limit) break;
      this.#known.delete(oldest);
    }
    return lastEventId;
  }

  /** Looks for it in the segments [from, to), in the newest first. */
  async #search(key: string, hash: Hash64, from: number, to: number): Promise<string | null> {
    let number = to;
    while ((number = await this.#filters.newest(hash, from, number)) >= 0) {
      const entry = await findEntry(this.#segments[number]!.list(this.#name), key);
      if (entry !== null) return entry.lastEventId;
    }
    return null;
  }
}
