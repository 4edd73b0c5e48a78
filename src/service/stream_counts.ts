/**
 * How many events each `(source, stream)` has and which is its last, in order of source, then
 * stream.
 */
import { assert } from "../assert.ts";
import type { StreamSummary } from "../event/types.ts";
import { streamKey } from "../log/segment_list.ts";

interface Count {
  readonly events: number;
  readonly lastEventId: string;
}

export class StreamCounts {
  #counts: Map<string, Count> = new Map();
  /** Whether a copy has the same map. */
  #isShared = false;
  /** All keys but those of `#added`, in order. */
  #sorted: string[] = [];
  #added: string[] = [];

  /** Number of streams. */
  get size(): number {
    return this.#counts.size;
  }

  /** Takes in later events of a stream. */
  add(source: string, stream: string, events: number, lastEventId: string): void {
    const key = streamKey(source, stream);
    const before = this.#counts.get(key);
    assert(
      before === undefined || before.lastEventId < lastEventId,
      "a stream's frontier moves on",
    );
    if (before === undefined) this.#added.push(key);
    if (this.#isShared) {
      this.#counts = new Map(this.#counts);
      this.#isShared = false;
    }
    this.#counts.set(key, { events: events + (before?.events ?? 0), lastEventId });
  }

  /** Last event of a stream; null when it has none. */
  frontier(source: string, stream: string): string | null {
    return this.#counts.get(streamKey(source, stream))?.lastEventId ?? null;
  }

  /**
   * At most `limit` rows after the key `after`, of one source when `source` is given.
   */
  rows(after: string, source: string | undefined, limit: number): StreamSummary[] {
    const keys = this.#keys();
    const prefix = source === undefined ? "" : streamKey(source, "");
    const rows: StreamSummary[] = [];
    for (
      let place = firstPlace(keys, after, prefix);
      place < keys.length && rows.length < limit && keys[place]!.startsWith(prefix);
      place++
    ) {
      rows.push(this.#row(keys[place]!));
    }
    return rows;
  }

  /** A copy that later additions leave as it is. The first of those pays for it. */
  copy(): StreamCounts {
    const copy = new StreamCounts();
    copy.#counts = this.#counts;
    copy.#sorted = this.#keys();
    copy.#isShared = true;
    this.#isShared = true;
    return copy;
  }

  #row(key: string): StreamSummary {
    const [source, stream] = key.split(" ") as [string, string];
    const { events, lastEventId } = this.#counts.get(key)!;
    return { source, stream, frontier_event_id: lastEventId, event_count: events };
  }

  #keys(): string[] {
    if (this.#added.length > 0) {
      this.#sorted = mergeSorted(this.#sorted, this.#added.sort());
      this.#added = [];
    }
    return this.#sorted;
  }
}

/** First place whose key is after `after` and not before `prefix`. */
function firstPlace(keys: string[], after: string, prefix: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const key = keys[middle]!;
    if (key <= after || key < prefix) low = middle + 1;
    else high = middle;
  }
  return low;
}

function mergeSorted(left: string[], right: string[]): string[] {
  const merged: string[] = [];
  let place = 0;
  for (const key of left) {
    while (place < right.length && right[place]! < key) merged.push(right[place++]!);
    merged.push(key);
  }
  return merged.concat(right.slice(place));
}
