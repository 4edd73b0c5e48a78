/**
 * In-memory event count and last event for each stream, for unsealed files or part of a segment.
 * Sorted by source, then stream, both in byte order.
 */
import { firstIndex } from "../../first_index.ts";

/** Approximate memory per stream. */
const STREAM_BYTES = 200;

/** Streams in a block from `blocks()`, other than the last. */
const BLOCK_STREAMS = 64;

/** The events in one stream. */
export interface StreamEntry {
  /** See `streamKey()`. */
  readonly key: string;
  events: number;
  lastEventId: string;
}

/** Returns a key that sorts by source, then stream. A space sorts before all name characters. */
export function streamKey(source: string, stream: string): string {
  return `${source} ${stream}`;
}

/** Returns the source and stream in a key. */
export function namesOf(key: string): [source: string, stream: string] {
  const space = key.indexOf(" ");
  return [key.slice(0, space), key.slice(space + 1)];
}

/** Sorted streams, in memory or in a file. */
export interface StreamSource {
  /** Yields the streams whose key is `key` or greater, in order, in blocks of at least one. */
  blocks(key: string): StreamBlocks;
}

/** See `StreamSource`. */
export type StreamBlocks =
  | Iterator<readonly StreamEntry[], void>
  | AsyncIterator<readonly StreamEntry[], void>;

export class StreamCounts implements StreamSource {
  #entries = new Map<string, StreamEntry>();
  /** Whether `#entries` is shared with a copy. */
  #isShared = false;
  /** The sorted keys, excluding those in `#unsorted`. */
  #sorted: readonly string[] = [];
  #unsorted: string[] = [];

  /** Approximate memory. Entries shared with a copy are counted in both. */
  get sizeBytes(): number {
    return this.#entries.size * STREAM_BYTES;
  }

  /** Adds `events` events from a stream, up to `lastEventId`. */
  add(source: string, stream: string, events: number, lastEventId: string): void {
    this.#add(streamKey(source, stream), events, lastEventId);
  }

  frontier(source: string, stream: string): string | null {
    return this.#entries.get(streamKey(source, stream))?.lastEventId ?? null;
  }

  /** Yields all streams in order. */
  *entries(): Generator<StreamEntry, void> {
    for (const key of this.#inOrder()) yield this.#entries.get(key)!;
  }

  /** Returns a copy that later additions do not affect (copy-on-write). */
  copy(): StreamCounts {
    const copy = new StreamCounts();
    copy.#sorted = this.#inOrder();
    copy.#entries = this.#entries;
    copy.#isShared = this.#isShared = true;
    return copy;
  }

  /** See `StreamSource`. Later additions invalidate the iterator, so call this on a copy. */
  *blocks(key: string): Generator<readonly StreamEntry[], void> {
    const sorted = this.#inOrder();
    let start = firstIndex(sorted.length, (i) => sorted[i]! >= key);
    for (; start < sorted.length; start += BLOCK_STREAMS) {
      yield sorted.slice(start, start + BLOCK_STREAMS).map((key) => this.#entries.get(key)!);
    }
  }

  #add(key: string, events: number, lastEventId: string): void {
    if (this.#isShared) {
      this.#entries = new Map([...this.#entries].map(([key, entry]) => [key, { ...entry }]));
      this.#isShared = false;
    }
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      this.#entries.set(key, { key, events, lastEventId });
      this.#unsorted.push(key);
    } else {
      entry.events += events;
      if (entry.lastEventId < lastEventId) entry.lastEventId = lastEventId;
    }
  }

  #inOrder(): readonly string[] {
    if (this.#unsorted.length > 0) {
      // This is cheap, since few keys are new and the sort merges the two sorted runs.
      this.#sorted = [...this.#sorted, ...this.#unsorted.sort()].sort();
      this.#unsorted = [];
    }
    return this.#sorted;
  }
}
