/**
 * The number of events and the last event of each stream, in memory: for files that are not sealed,
 * or for a part of a segment. In byte order of source, then stream.
 */
import { firstIndex } from "../../first_index.ts";

/** Approximate memory of one stream. */
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

/** A position in streams that are in order. */
export interface StreamCursor {
  /** Key of the current stream; null at the end, where the other members are undefined. */
  readonly key: string | null;
  readonly events: number;
  readonly lastEventId: string;
  /** Moves to the next stream of the block. @returns false at its end: call `nextBlock()`. */
  next(): boolean;
  /** Moves to the first stream of the blocks behind, or to the end. */
  nextBlock(): Promise<void>;
}

export class StreamCounts implements StreamSource {
  /** By source, then by stream: joining the names costs more than two lookups. */
  #entries: EntryMaps = new Map();
  /** Whether a copy has the same maps. */
  #isShared = false;
  #size = 0;
  /** The keys in order, without those in `#unsorted`. */
  #sorted: readonly string[] = [];
  #unsorted: string[] = [];

  /** Approximate memory; maps shared with a copy count in both. */
  get sizeBytes(): number {
    return this.#size * STREAM_BYTES;
  }

  /** Adds events of a stream, the last of which has that id. */
  add(source: string, stream: string, events: number, lastEventId: string): void {
    const entry = this.#entryToChange(source, stream);
    entry.events += events;
    if (entry.lastEventId < lastEventId) entry.lastEventId = lastEventId;
  }

  /** As `add()`, for events before all others of the stream: its last event may be known. */
  addEarlier(source: string, stream: string, events: number, lastEventId: () => string): void {
    const entry = this.#entryToChange(source, stream);
    entry.events += events;
    if (entry.lastEventId === "") entry.lastEventId = lastEventId();
  }

  /** Last event of a stream; null when it has none. */
  frontier(source: string, stream: string): string | null {
    return this.#entries.get(source)?.get(stream)?.lastEventId ?? null;
  }

  /** All streams in order. */
  *entries(): Generator<StreamEntry, void> {
    for (const key of this.#inOrder()) yield entryOf(this.#entries, key);
  }

  /** A copy that later additions do not change. Copies on the first of those. */
  copy(): StreamCounts {
    const copy = new StreamCounts();
    copy.#sorted = this.#inOrder();
    copy.#entries = this.#entries;
    copy.#size = this.#size;
    copy.#isShared = true;
    this.#isShared = true;
    return copy;
  }

  /** See `StreamSource`. Later additions invalidate the cursor: call it on a copy. */
  seek(key: string): StreamCursor {
    return new CountsCursor(this.#entries, this.#inOrder(), key);
  }

  #entryToChange(source: string, stream: string): StreamEntry {
    if (this.#isShared) this.#entries = copyOf(this.#entries);
    this.#isShared = false;
    const known = this.#entries.get(source)?.get(stream);
    if (known !== undefined) return known;
    // The names may be slices of a whole request: slices of the key, a new string, are kept.
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
      // Few are new: the sort merges the two runs.
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
  #index: number;

  constructor(entries: EntryMaps, sorted: readonly string[], key: string) {
    this.#entries = entries;
    this.#sorted = sorted;
    this.#index = firstIndex(sorted.length, (i) => sorted[i]! >= key);
  }

  get key(): string | null {
    return this.#sorted[this.#index] ?? null;
  }

  get events(): number {
    return entryOf(this.#entries, this.key!).events;
  }

  get lastEventId(): string {
    return entryOf(this.#entries, this.key!).lastEventId;
  }

  next(): boolean {
    this.#index += 1;
    return true;
  }

  nextBlock(): Promise<void> {
    return Promise.resolve();
  }
}
