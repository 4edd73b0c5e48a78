/**
 * How many events each stream has and which is its last, in memory: of the files that are in no
 * segment, or of a part of one. In byte order of source, then stream.
 */
/** Memory that one stream takes, about. */
const STREAM_BYTES = 200;

/** The events of one stream. */
export interface StreamEntry {
  /** See `streamKey()`. */
  readonly key: string;
  readonly events: number;
  readonly lastEventId: string;
}

/** One string for a stream, in the order of source, then stream. No name holds a space. */
export function streamKey(source: string, stream: string): string {
  return `${source} ${stream}`;
}

/** Streams in order, wherever they are kept. */
export interface StreamSource {
  /** A cursor at the first stream whose key is not before `key`. */
  seek(key: string): StreamCursor | Promise<StreamCursor>;
}

/** Goes over streams in order. */
export interface StreamCursor {
  /** Key of the stream that it stands at; null at the end, where it tells nothing else. */
  readonly key: string | null;
  readonly events: number;
  readonly lastEventId: string;
  /** Goes on to the next stream of the block. @returns false when `nextBlock()` is to be called. */
  next(): boolean;
  /** Goes on to the first stream of the blocks behind, or to the end. */
  nextBlock(): Promise<void>;
}

export class StreamCounts implements StreamSource {
  /** By their keys. The entries never change. */
  #entries = new Map<string, StreamEntry>();
  /** Whether a copy has the same map. */
  #isShared = false;
  /** The keys in order, but for those in `#unsorted`. Never changed. */
  #sorted: readonly string[] = [];
  /** New keys since they were last sorted. */
  #unsorted: string[] = [];

  /** Memory it takes, about, whether or not a copy has the same. */
  get sizeBytes(): number {
    return this.#entries.size * STREAM_BYTES;
  }

  /** Takes in the next events of a stream. */
  add(key: string, events: number, lastEventId: string): void {
    if (this.#isShared) this.#entries = new Map(this.#entries);
    this.#isShared = false;
    const before = this.#entries.get(key);
    // A key that is known stays the one text: the map holds the first.
    if (before === undefined) this.#unsorted.push(key);
    this.#entries.set(key, {
      key: before?.key ?? key,
      events: events + (before?.events ?? 0),
      lastEventId,
    });
  }

  /** Takes in what was counted of later events. */
  addAll(later: StreamCounts): void {
    for (const { key, events, lastEventId } of later.#entries.values()) {
      this.add(key, events, lastEventId);
    }
  }

  /** Last event of a stream; null when it has none. */
  frontier(key: string): string | null {
    return this.#entries.get(key)?.lastEventId ?? null;
  }

  /** All streams in order, one after the other: there may be as many as events. */
  *entries(): Generator<StreamEntry, void> {
    for (const key of this.#inOrder()) yield this.#entries.get(key)!;
  }

  /** A copy that later additions leave as it is. The first of those pays for it. */
  copy(): StreamCounts {
    const copy = new StreamCounts();
    copy.#sorted = this.#inOrder();
    copy.#entries = this.#entries;
    copy.#isShared = true;
    this.#isShared = true;
    return copy;
  }

  /** Goes over the streams as they are now. To be called of a copy, where others are added. */
  seek(key: string): StreamCursor {
    return new CountsCursor(this.#entries, this.#inOrder(), key);
  }

  #inOrder(): readonly string[] {
    if (this.#unsorted.length > 0) {
      // Mostly few are new: the sort merges them with those that are in order.
      this.#sorted = [...this.#sorted, ...this.#unsorted.sort()].sort();
      this.#unsorted = [];
    }
    return this.#sorted;
  }
}

class CountsCursor implements StreamCursor {
  readonly #entries: ReadonlyMap<string, StreamEntry>;
  readonly #sorted: readonly string[];
  #place: number;

  /** A cursor at the first key that is not before `key`. */
  constructor(entries: ReadonlyMap<string, StreamEntry>, sorted: readonly string[], key: string) {
    this.#entries = entries;
    this.#sorted = sorted;
    let low = 0;
    let high = sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sorted[middle]! < key) low = middle + 1;
      else high = middle;
    }
    this.#place = low;
  }

  get key(): string | null {
    return this.#sorted[this.#place] ?? null;
  }

  get events(): number {
    return this.#entries.get(this.key!)!.events;
  }

  get lastEventId(): string {
    return this.#entries.get(this.key!)!.lastEventId;
  }

  next(): boolean {
    this.#place += 1;
    return true;
  }

  nextBlock(): Promise<void> {
    return Promise.resolve();
  }
}
