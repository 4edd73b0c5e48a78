/**
 * In-memory event count and last event for each stream, for unsealed files or part of a segment,
 * and the merge of streams of several parts of the log, as an LSM tree merges its runs. Listed by
 * source, then stream, both in byte order.
 *
 * Streams in memory are sorted in blocks, which are merged too. A full block is sorted once, so
 * that a page after a commit sorts little more than the streams of the commit.
 */
import { Buffer } from "node:buffer";
import { firstIndex } from "../../first_index.ts";
import { serveSockets } from "../../turns.ts";
import { UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import { BLOCK_ENTRIES, KeyTable, writeHex } from "./key_table.ts";

/** The last event id, and the number of events in 32 bits. */
const RECORD_BYTES = UUID_BYTES + 4;
/** Sorting for longer than this gives others a turn of the event loop. */
const SORTING_MS_MAX = 4;

/** Maximum parts of the log searched concurrently. */
const SEEKS_MAX = 32;
const BLOCK_STREAMS_MAX = 128;

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

export type StreamBlocks =
  | Iterator<readonly StreamEntry[], void>
  | AsyncIterator<readonly StreamEntry[], void>;

const newId = Buffer.alloc(UUID_BYTES);

export class StreamCounts {
  readonly #table = new KeyTable(RECORD_BYTES);
  /** Sorted numbers in each block that has been sorted, relative to the block's start. */
  readonly #orders: Uint16Array[] = [];

  get sizeBytes(): number {
    return this.#table.sizeBytes + this.#orders.length * BLOCK_ENTRIES * 2;
  }

  /**
   * Adds `events` events from a stream, up to `lastEventId`.
   * @returns false if the stream already has that event or a later one, which then stays its last.
   */
  add(source: string, stream: string, events: number, lastEventId: string): boolean {
    const { bytes, at } = this.#table.writableRecordOf(this.#table.add(source, stream));
    const countAt = at + UUID_BYTES;
    bytes.writeUInt32LE(bytes.readUInt32LE(countAt) + events, countAt);
    writeHex(newId, 0, lastEventId);
    if (bytes.compare(newId, 0, UUID_BYTES, at, countAt) >= 0) return false;
    bytes.set(newId, at);
    return true;
  }

  frontier(source: string, stream: string): string | null {
    const number = this.#table.find(source, stream);
    if (number < 0) return null;
    const { bytes, at } = this.#table.recordOf(number);
    return uuidText(bytes, at);
  }

  /** Returns the streams as they are now. Later additions do not affect the result. */
  snapshot(): StreamSource {
    // Later streams have greater numbers.
    const { count } = this.#table;
    const records = this.#table.snapshot();
    return { blocks: (key) => this.#blocks(key, count, records) };
  }

  async *#blocks(
    key: string,
    count: number,
    records: readonly Buffer[],
  ): AsyncGenerator<readonly StreamEntry[], void> {
    const sources: StreamSource[] = [];
    let turnMs = performance.now();
    for (let start = 0; start < count; start += BLOCK_ENTRIES) {
      const end = Math.min(count, start + BLOCK_ENTRIES);
      const order = this.#order(start, end);
      sources.push({ blocks: (key) => this.#blockFrom(start, order, key, records) });
      if (end === count || performance.now() - turnMs < SORTING_MS_MAX) continue;
      await serveSockets();
      turnMs = performance.now();
    }
    yield* mergedStreams(sources, key);
  }

  *#blockFrom(
    start: number,
    order: Uint16Array,
    key: string,
    records: readonly Buffer[],
  ): Generator<readonly StreamEntry[], void> {
    const keyAt = (place: number) => this.#table.keyOf(start + order[place]!);
    const first = firstIndex(order.length, (place) => keyAt(place) >= key);
    // One by one, since a page needs few streams of each block.
    for (const number of order.subarray(first)) yield [this.#entry(start + number, records)];
  }

  /** Returns the sorted numbers from `start` to `end`, relative to `start`. */
  #order(start: number, end: number): Uint16Array {
    const count = end - start;
    const known = this.#orders[start / BLOCK_ENTRIES];
    if (known !== undefined && known.length >= count) {
      return known.length === count ? known : known.filter((number) => number < count);
    }
    // Sorting strings is faster than comparing bytes.
    const keys = Array.from(
      { length: count },
      // The number follows a character that sorts before those in names.
      (_, place) => `${this.#table.keyOf(start + place)}\0${String.fromCharCode(place)}`,
    );
    const order = Uint16Array.from(keys.sort(), (key) => key.charCodeAt(key.length - 1));
    return this.#orders[start / BLOCK_ENTRIES] = order;
  }

  #entry(number: number, records: readonly Buffer[]): StreamEntry {
    const { bytes, at } = this.#table.recordOf(number, records);
    const events = bytes.readUInt32LE(at + UUID_BYTES);
    return { key: this.#table.keyOf(number), events, lastEventId: uuidText(bytes, at) };
  }
}

/** A part of the log, and the place reached in its streams. */
interface Part {
  readonly blocks: StreamBlocks;
  /** The current block; empty at the end. */
  block: readonly StreamEntry[];
  /** Place of the next stream in the block. */
  place: number;
}

/**
 * Yields all streams from a key on, in order, in blocks of at least one. A stream that several
 * parts have is one entry, with the sum of the counts and the latest event.
 */
export async function* mergedStreams(
  sources: readonly StreamSource[],
  from: string,
): AsyncGenerator<StreamEntry[], void> {
  const parts = sources.map((source): Part => (
    { blocks: source.blocks(from), block: [], place: 0 }
  ));
  for (let place = 0; place < parts.length; place += SEEKS_MAX) {
    const seeks = parts.slice(place, place + SEEKS_MAX).map(enterNextBlock);
    // Wait for all seeks, so that no file is still being read after the merge has failed.
    await Promise.allSettled(seeks);
    await Promise.all(seeks);
  }
  const waiting = parts.filter(({ block }) => block.length > 0);
  waiting.sort((a, b) => nextOf(a).key < nextOf(b).key ? -1 : 1);
  let merged: StreamEntry[] = [];
  while (waiting.length > 0) {
    const part = waiting.shift()!;
    const { key, events, lastEventId } = nextOf(part);
    const last = merged.at(-1);
    if (last?.key === key) {
      last.events += events;
      if (last.lastEventId < lastEventId) last.lastEventId = lastEventId;
    } else {
      if (merged.length === BLOCK_STREAMS_MAX) {
        yield merged;
        merged = [];
      }
      merged.push({ key, events, lastEventId });
    }
    part.place += 1;
    if (part.place === part.block.length) await enterNextBlock(part);
    if (part.block.length === 0) continue;
    const next = nextOf(part).key;
    waiting.splice(
      firstIndex(waiting.length, (place) => nextOf(waiting[place]!).key >= next),
      0,
      part,
    );
  }
  if (merged.length > 0) yield merged;
}

async function enterNextBlock(part: Part): Promise<void> {
  part.block = (await part.blocks.next()).value ?? [];
  part.place = 0;
}

function nextOf({ block, place }: Part): StreamEntry {
  return block[place]!;
}
