/**
 * In-memory event count and last event for each stream, for unsealed files or part of a segment.
 * Listed by source, then stream, both in byte order.
 *
 * Blocks of streams are sorted when a listing first goes past their least key, and merged while it
 * is read, so that a page after a commit sorts little more than the commit's streams. Once a
 * listing exists, changes to streams are logged, and earlier listings read the counts from there.
 */
import { Buffer } from "node:buffer";
import { setTimeout } from "node:timers/promises";
import { firstIndex } from "../../first_index.ts";
import {
  BLOCK_ENTRIES,
  EVENT_ID_BYTES,
  KeyTable,
  readEventId,
  type RecordPlace,
  writeHex,
} from "./key_table.ts";

/** The last event id, and the number of events in 32 bits. */
const RECORD_BYTES = EVENT_ID_BYTES + 4;
/** A change: the stream's record before it, and its number in 32 bits. */
const CHANGE_BYTES = RECORD_BYTES + 4;
/** Largest block from `blocks()`. The first has one stream, and others as many as all before. */
const BLOCK_STREAMS_MAX = 64;
/** Sorting for longer than this gives others a turn of the event loop. */
const SORTING_MS_MAX = 4;

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

/** A stream's key and number. */
interface Keyed {
  key: string;
  number: number;
}

/** The streams at one moment. */
interface View {
  /** Number of streams. Later ones have greater numbers. */
  count: number;
  /** Least stream in the last block. */
  least: Keyed | undefined;
  /** Sorted numbers in the last block, relative to its start; null until needed. */
  order: Uint16Array | null;
  /** The first change since then to each stream that has changed. */
  changed: Map<number, number>;
  /** Number of changes that `changed` reflects. */
  changesSeen: number;
}

/** A block of streams, and the place reached in it. */
interface Run extends Keyed {
  start: number;
  /** Place of `number` in the block's order. */
  place: number;
}

const newId = Buffer.alloc(EVENT_ID_BYTES);

export class StreamCounts implements StreamSource {
  readonly #table = new KeyTable(RECORD_BYTES);
  /** The least stream in each block. */
  readonly #least: Keyed[] = [];
  /** Sorted numbers in each full block that has been sorted, relative to the block's start. */
  readonly #orders: Uint16Array[] = [];
  /** Changes to streams since the first listing; null until then. */
  #changes: Buffer | null = null;
  #changesCount = 0;

  get sizeBytes(): number {
    return this.#table.sizeBytes + this.#orders.length * BLOCK_ENTRIES * 2 +
      (this.#changes?.length ?? 0);
  }

  /**
   * Adds `events` events from a stream, up to `lastEventId`.
   * @returns false if the stream already has that event or a later one, which then stays its last.
   */
  add(source: string, stream: string, events: number, lastEventId: string): boolean {
    const found = this.#table.find(source, stream);
    const number = found < 0 ? this.#insert(source, stream) : found;
    if (found >= 0) this.#logChange(number);
    const { bytes, at } = this.#table.recordOf(number);
    const countAt = at + EVENT_ID_BYTES;
    bytes.writeUInt32LE(bytes.readUInt32LE(countAt) + events, countAt);
    writeHex(newId, 0, lastEventId);
    if (bytes.compare(newId, 0, EVENT_ID_BYTES, at, countAt) >= 0) return false;
    bytes.set(newId, at);
    return true;
  }

  frontier(source: string, stream: string): string | null {
    const number = this.#table.find(source, stream);
    if (number < 0) return null;
    const { bytes, at } = this.#table.recordOf(number);
    return readEventId(bytes, at);
  }

  /** Yields all streams in order. */
  *entries(): Generator<StreamEntry, void> {
    const view = this.#view();
    for (const next of this.#inOrder("", view)) if (next !== null) yield this.#entry(next, view);
  }

  /** Returns the streams as they are now. Later additions do not affect the result. */
  snapshot(): StreamSource {
    this.#changes ??= Buffer.alloc(0);
    const view = this.#view();
    return { blocks: (key) => this.#blocks(key, view) };
  }

  /** See `StreamSource`. Later additions do not affect the iterator. */
  blocks(key: string): StreamBlocks {
    return this.snapshot().blocks(key);
  }

  #view(): View {
    const { count } = this.#table;
    const least = this.#least.at(-1);
    return { count, least, order: null, changed: new Map(), changesSeen: this.#changesCount };
  }

  #insert(source: string, stream: string): number {
    const key = streamKey(source, stream);
    const number = this.#table.add(source, stream);
    const block = Math.trunc(number / BLOCK_ENTRIES);
    const least = this.#least[block];
    if (least === undefined || key < least.key) this.#least[block] = { key, number };
    return number;
  }

  #logChange(number: number): void {
    if (this.#changes === null) return;
    const end = this.#changesCount++ * CHANGE_BYTES;
    if (end === this.#changes.length) {
      const changes = Buffer.alloc(CHANGE_BYTES * Math.ceil(1.5 * this.#changesCount + 16));
      changes.set(this.#changes);
      this.#changes = changes;
    }
    const { bytes, at } = this.#table.recordOf(number);
    bytes.copy(this.#changes, end, at, at + RECORD_BYTES);
    this.#changes.writeUInt32LE(number, end + RECORD_BYTES);
  }

  async *#blocks(key: string, view: View): AsyncGenerator<readonly StreamEntry[], void> {
    let block: StreamEntry[] = [];
    let yielded = 0;
    let turnMs = performance.now();
    for (const next of this.#inOrder(key, view)) {
      if (next !== null) block.push(this.#entry(next, view));
      if (block.length > 0 && block.length >= Math.min(yielded, BLOCK_STREAMS_MAX)) {
        yield block;
        yielded += block.length;
        block = [];
      } else if (next === null && performance.now() - turnMs > SORTING_MS_MAX) {
        await setTimeout(0);
        turnMs = performance.now();
      }
    }
    if (block.length > 0) yield block;
  }

  /** Yields the streams from `from` on, and null whenever a block has been sorted. */
  *#inOrder(from: string, view: View): Generator<Keyed | null, void> {
    const runs: Run[] = [];
    for (let start = 0; start < view.count; start += BLOCK_ENTRIES) {
      const isLast = start + BLOCK_ENTRIES >= view.count;
      const least = isLast ? view.least! : this.#least[start / BLOCK_ENTRIES]!;
      // The least stream is known before the block is sorted.
      let run: Run | null = { ...least, start, place: 0 };
      if (least.key < from) {
        const order = this.#order(start, view);
        const keyAt = (place: number) => this.#table.keyOf(start + order[place]!);
        const place = firstIndex(order.length, (place) => keyAt(place) >= from);
        run = this.#runAt(start, place, view);
        yield null;
      }
      if (run !== null) runs.push(run);
    }
    runs.sort((a, b) => a.key < b.key ? -1 : 1);
    while (runs.length > 0) {
      const first = runs.shift()!;
      yield first;
      const next = this.#runAt(first.start, first.place + 1, view);
      if (first.place === 0) yield null;
      if (next === null) continue;
      runs.splice(firstIndex(runs.length, (place) => runs[place]!.key > next.key), 0, next);
    }
  }

  /** Returns the block that starts at `start`, at a place in its order; null at its end. */
  #runAt(start: number, place: number, view: View): Run | null {
    const order = this.#order(start, view);
    if (place === order.length) return null;
    const number = start + order[place]!;
    return { key: this.#table.keyOf(number), number, start, place };
  }

  #order(start: number, view: View): Uint16Array {
    const end = start + BLOCK_ENTRIES;
    if (end > view.count) return view.order ??= this.#sorted(start, view.count);
    return this.#orders[start / BLOCK_ENTRIES] ??= this.#sorted(start, end);
  }

  /** Sorts strings, which is faster than comparing bytes. */
  #sorted(start: number, end: number): Uint16Array {
    const keys = Array.from(
      { length: end - start },
      // The number follows a character that sorts before those in names.
      (_, place) => `${this.#table.keyOf(start + place)}\0${String.fromCharCode(place)}`,
    );
    return Uint16Array.from(keys.sort(), (key) => key.charCodeAt(key.length - 1));
  }

  #entry({ key, number }: Keyed, view: View): StreamEntry {
    const { bytes, at } = this.#recordAt(number, view);
    return {
      key,
      events: bytes.readUInt32LE(at + EVENT_ID_BYTES),
      lastEventId: readEventId(bytes, at),
    };
  }

  /** Returns a stream's record as it was. */
  #recordAt(number: number, view: View): RecordPlace {
    const { changed } = view;
    for (; view.changesSeen < this.#changesCount; view.changesSeen++) {
      const at = view.changesSeen * CHANGE_BYTES;
      const stream = this.#changes!.readUInt32LE(at + RECORD_BYTES);
      if (stream < view.count && !changed.has(stream)) changed.set(stream, at);
    }
    const at = changed.get(number);
    return at === undefined ? this.#table.recordOf(number) : { bytes: this.#changes!, at };
  }
}
