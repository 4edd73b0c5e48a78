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
  events: number;
  lastEventId: string;
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
  /** By source, then by stream: to join the two costs more than to look twice. */
  #entries: EntryMaps = new Map();
  /** Whether a copy has the same maps. */
  #isShared = false;
  #size = 0;
  /** The keys in order, but for those in `#unsorted`. Never changed. */
  #sorted: readonly string[] = [];
  /** New keys since they were last sorted. */
  #unsorted: string[] = [];

  /** Memory it takes, about, whether or not a copy has the same. */
  get sizeBytes(): number {
    return this.#size * STREAM_BYTES;
  }

  /** Takes in events of a stream, the last of which has that id. */
  add(source: string, stream: string, events: number, lastEventId: string): void {
    const entry = this.#entryToChange(source, stream);
    entry.events += events;
    if (entry.lastEventId < lastEventId) entry.lastEventId = lastEventId;
  }

  /** As `add()`, of events before all of the stream that are in: its last event may be known. */
  addEarlier(source: string, stream: string, events: number, lastEventId: () => string): void {
    const entry = this.#entryToChange(source, stream);
    entry.events += events;
    if (entry.lastEventId === "") entry.lastEventId = lastEventId();
  }

  /** Takes in what another one counts. */
  addAll(others: StreamCounts): void {
    for (const { key, events, lastEventId } of others.entries()) {
      const [source, stream] = namesOf(key);
      this.add(source, stream, events, lastEventId);
    }
  }

  /** Last event of a stream; null when it has none. */
  frontier(source: string, stream: string): string | null {
    return this.#entries.get(source)?.get(stream)?.lastEventId ?? null;
  }

  /** All streams in order, one after the other: there may be as many as events. */
  *entries(): Generator<StreamEntry, void> {
    for (const key of this.#inOrder()) yield entryOf(this.#entries, key);
  }

  /** A copy that later additions leave as it is. The first of those pays for it. */
  copy(): StreamCounts {
    const copy = new StreamCounts();
    copy.#sorted = this.#inOrder();
    copy.#entries = this.#entries;
    copy.#size = this.#size;
    copy.#isShared = true;
    this.#isShared = true;
    return copy;
  }

  /** Goes over the streams as they are now. To be called of a copy, where others are added. */
  seek(key: string): StreamCursor {
    return new CountsCursor(this.#entries, this.#inOrder(), key);
  }

  #entryToChange(source: string, stream: string): StreamEntry {
    if (this.#isShared) this.#entries = copyOf(this.#entries);
    this.#isShared = false;
    const known = this.#entries.get(source)?.get(stream);
    if (known !== undefined) return known;
    // Names may be parts of a whole request: those of the key, which is a new text, are kept.
    const key = streamKey(source, stream);
    const [ownSource, ownStream] = namesOf(key);
    const entry = { key, events: 0, lastEventId: "" };
    const streams = this.#entries.get(source);
    if (streams === undefined) this.#entries.set(ownSource, new Map([[ownStream, entry]]));
    else streams.set(ownStream, entry);
    this.#unsorted.push(key);
    this.#size += 1;
    return entry;
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

/** The source and the stream of a key. */
export function namesOf(key: string): [source: string, stream: string] {
  const space = key.indexOf(" ");
  return [key.slice(0, space), key.slice(space + 1)];
}

type EntryMaps = Map<string, Map<string, StreamEntry>>;

function entryOf(entries: EntryMaps, key: string): StreamEntry {
  const [source, stream] = namesOf(key);
  return entries.get(source)!.get(stream)!;
}

function copyOf(entries: EntryMaps): EntryMaps {
  const copy: EntryMaps = new Map();
  for (const [source, streams] of entries) {
    const copied = new Map<string, StreamEntry>();
    for (const [stream, entry] of streams) copied.set(stream, { ...entry });
    copy.set(source, copied);
  }
  return copy;
}

class CountsCursor implements StreamCursor {
  readonly #entries: EntryMaps;
  readonly #sorted: readonly string[];
  #place: number;

  /** A cursor at the first key that is not before `key`. */
  constructor(entries: EntryMaps, sorted: readonly string[], key: string) {
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
    return entryOf(this.#entries, this.key!).events;
  }

  get lastEventId(): string {
    return entryOf(this.#entries, this.key!).lastEventId;
  }

  next(): boolean {
    this.#place += 1;
    return true;
  }

  nextBlock(): Promise<void> {
    return Promise.resolve();
  }
}
