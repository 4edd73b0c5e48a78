/**
 * Last events of sources and streams in segments, looked up from the newest segment back. The
 * latest answers are kept; a segment that is added later is asked when its key is next asked for.
 */
import { LruCache } from "../../lru_cache.ts";
import type { KeyFilters } from "./key_filters.ts";
import type { ListedSegment } from "./listed_segment.ts";
import { findEntry } from "./stream_index_reader.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";

/** Last events of sealed sources and streams kept in memory: about 8 MiB. */
const FRONTIERS_CACHED_MAX = 32 * 1024;

interface Known {
  /** Null when none of the segments has it. */
  lastEventId: string | null;
  /** How many segments, from the oldest on, that was found in. */
  segments: number;
}

export class SealedFrontiers {
  readonly #segments: readonly ListedSegment[];
  readonly #filters: KeyFilters;
  readonly #known = new LruCache<Known>(FRONTIERS_CACHED_MAX);

  /** @param segments from oldest to newest; grows at its end. */
  constructor(segments: readonly ListedSegment[], filters: KeyFilters) {
    this.#segments = segments;
    this.#filters = filters;
  }

  /**
   * Last event of a key of the stream index with that hash; null when it has none.
   * @throws {CorruptLogError}
   */
  async find(key: string, hash: Hash64): Promise<string | null> {
    const known = this.#known.get(key);
    const segments = this.#segments.length;
    const lastEventId = await this.#search(key, hash, known?.segments ?? 0, segments) ??
      known?.lastEventId ?? null;
    this.#known.set(key, { lastEventId, segments });
    return lastEventId;
  }

  /** Looks for it in the segments [from, to), in the newest first. */
  async #search(key: string, hash: Hash64, from: number, to: number): Promise<string | null> {
    let number = to;
    while ((number = await this.#filters.newest(hash, from, number)) >= 0) {
      const entry = await findEntry(this.#segments[number]!.streams, key);
      if (entry !== null) return entry.lastEventId;
    }
    return null;
  }
}
