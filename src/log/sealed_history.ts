/**
 * What the segments of a log know together without their rows being read, and how to look further.
 */
import { BloomCache } from "./bloom_cache.ts";
import type { BatchEntry } from "./commit_frame.ts";
import type { Segment } from "./segment_reader.ts";

export class SealedHistory {
  /** Shared by all segments. */
  readonly blooms: BloomCache;
  readonly #segments: Segment[] = [];
  readonly #frontierBySource = new Map<string, string>();

  constructor() {
    this.blooms = new BloomCache();
  }

  /** From oldest to newest. */
  get segments(): readonly Segment[] {
    return this.#segments;
  }

  /** Last event of the last segment; null when there is none. */
  get lastEventId(): string | null {
    return this.#segments.at(-1)?.metadata.last_event_id ?? null;
  }

  /** Takes in the next segment. */
  add(segment: Segment): void {
    this.#segments.push(segment);
    for (const { source, last_event_id } of segment.metadata.streams) {
      const before = this.#frontierBySource.get(source);
      if (before === undefined || before < last_event_id) {
        this.#frontierBySource.set(source, last_event_id);
      }
    }
  }

  /** Last sealed event of a source; undefined when it has none. */
  sourceFrontier(source: string): string | undefined {
    return this.#frontierBySource.get(source);
  }

  /** The sealed batch of that identity; null when there is none. Newest segments first. */
  async findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    if (!this.#frontierBySource.has(source)) return null;
    for (const segment of this.#segments.toReversed()) {
      const entry = await segment.findBatch(source, batchId);
      if (entry !== null) return entry;
    }
    return null;
  }
}
