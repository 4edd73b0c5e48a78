/**
 * How many events each `(source, stream)` has and which is its last, in order of source, then
 * stream. A hundred thousand streams take about 8 MiB: they are kept in flat arrays.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import type { StreamSummary } from "../../event/types.ts";
import { freeOwnMemory } from "../../free_memory.ts";
import { NAME_BYTES_MAX } from "../../limits.ts";
import { sortKeys } from "./key_order.ts";
import { KeyTable } from "./key_table.ts";
import { putBytes, takeUuid, UUID_BYTES, UUID_CHARS, uuidText } from "../line/line_bytes.ts";
import { streamKey } from "./stream_index.ts";

const FIRST_STREAMS = 64;
const SPACE = 0x20;
/** The key that is looked for: a `streamKey()`. */
const key = Buffer.allocUnsafeSlow(2 * NAME_BYTES_MAX + 1);
/** The id that is taken in, as it is spelled and as it is kept. */
const idText = Buffer.allocUnsafeSlow(UUID_CHARS);
const id = Buffer.allocUnsafeSlow(UUID_BYTES);

/** Events of one stream. */
export interface StreamCount {
  source: string;
  stream: string;
  events: number;
  last_event_id: string;
}

/** Bytes [start, end), a name of a source or a stream. */
export interface NameBytes {
  bytes: Uint8Array;
  start: number;
  end: number;
}

/** Of each stream, by the number of its key. */
class Counted {
  readonly keys: KeyTable;
  events = new Float64Array(FIRST_STREAMS);
  lastIds: Buffer = Buffer.alloc(FIRST_STREAMS * UUID_BYTES);

  constructor(keys: KeyTable = new KeyTable()) {
    this.keys = keys;
  }

  get sizeBytes(): number {
    return this.keys.sizeBytes + this.events.byteLength + this.lastIds.length;
  }

  /** Makes room for the stream of a number. */
  reserve(number: number): void {
    if (number < this.events.length) return;
    const events = new Float64Array(2 * this.events.length);
    events.set(this.events);
    freeOwnMemory(this.events);
    this.events = events;
    const lastIds = Buffer.concat([this.lastIds], 2 * this.lastIds.length);
    freeOwnMemory(this.lastIds);
    this.lastIds = lastIds;
  }

  copy(): Counted {
    const copy = new Counted(this.keys.copy());
    copy.events = this.events.slice();
    copy.lastIds = Buffer.concat([this.lastIds]);
    return copy;
  }
}

export class StreamCounts {
  #counted = new Counted();
  /** Whether a copy has the same. */
  #isShared = false;
  /** The first streams that came, as many as there are here, in order. Never changed. */
  #sorted: Uint32Array = new Uint32Array();

  /** Number of streams. */
  get size(): number {
    return this.#counted.keys.size;
  }

  /** Memory it takes, whether or not a copy has the same. */
  get sizeBytes(): number {
    return this.#counted.sizeBytes + this.#sorted.byteLength;
  }

  /** Takes in later events of a stream. */
  add(source: string, stream: string, events: number, lastEventId: string): void {
    const before = this.size;
    const number = this.#take(source, stream, lastEventId);
    const at = number * UUID_BYTES;
    assert(
      number === before ||
        this.#counted.lastIds.compare(id, 0, UUID_BYTES, at, at + UUID_BYTES) < 0,
      "a stream's frontier moves on",
    );
    this.#put(number, events);
  }

  /** As `add()`, in whatever order a file has its events. */
  addNext(source: string, stream: string, events: number, lastEventId: string): void {
    this.#put(this.#take(source, stream, lastEventId), events);
  }

  /**
   * Takes in events of a stream, in UTF-8, that are before all of it that were taken in.
   * @returns its number when it is new, whose last event is to be told by `setLastEvent()`; else
   *   null.
   */
  addEarlier(source: NameBytes, stream: NameBytes, events: number): number | null {
    const counted = this.#toChange();
    const before = counted.keys.size;
    const sourceEnd = putBytes(key, 0, source.bytes, source.start, source.end);
    key[sourceEnd] = SPACE;
    const end = putBytes(key, sourceEnd + 1, stream.bytes, stream.start, stream.end);
    const number = counted.keys.add(key, end);
    counted.reserve(number);
    counted.events[number]! += events;
    return number === before ? number : null;
  }

  /** The last event of the stream of a number, its id at `start` of the bytes. */
  setLastEvent(number: number, bytes: Uint8Array, start: number): void {
    putBytes(this.#toChange().lastIds, number * UUID_BYTES, bytes, start, start + UUID_BYTES);
  }

  /** Last event of a stream; null when it has none. */
  frontier(source: string, stream: string): string | null {
    const number = this.#counted.keys.find(key, putKey(source, stream));
    return number === null ? null : this.#lastEventId(number);
  }

  /**
   * At most `limit` rows after the key `after`, of one source when `source` is given.
   */
  rows(after: string, source: string | undefined, limit: number): StreamSummary[] {
    const sorted = this.#inOrder();
    const { keys } = this.#counted;
    const prefix = source === undefined ? "" : streamKey(source, "");
    const rows: StreamSummary[] = [];
    for (
      let place = firstPlace(keys, sorted, after, prefix);
      place < sorted.length && rows.length < limit;
      place++
    ) {
      const text = keys.textOf(sorted[place]!);
      if (!text.startsWith(prefix)) break;
      rows.push(this.#row(sorted[place]!, text));
    }
    return rows;
  }

  /** All streams in order, one after the other: there may be as many as events. */
  *entries(): Generator<StreamCount, void> {
    for (const number of this.#inOrder()) {
      const row = this.#row(number, this.#counted.keys.textOf(number));
      const { source, stream, event_count: events, frontier_event_id: last_event_id } = row;
      yield { source, stream, events, last_event_id };
    }
  }

  /** A copy that later additions leave as it is. The first of those pays for it. */
  copy(): StreamCounts {
    const copy = new StreamCounts();
    copy.#sorted = this.#inOrder();
    copy.#counted = this.#counted;
    copy.#isShared = true;
    this.#isShared = true;
    return copy;
  }

  #toChange(): Counted {
    if (this.#isShared) {
      this.#counted = this.#counted.copy();
      this.#isShared = false;
    }
    return this.#counted;
  }

  /** Number of a stream, `id` being its last event then. */
  #take(source: string, stream: string, lastEventId: string): number {
    const counted = this.#toChange();
    const number = counted.keys.add(key, putKey(source, stream));
    counted.reserve(number);
    putText(idText, 0, lastEventId);
    assert(takeUuid(idText, 0, id, 0), "an event id is a UUID");
    return number;
  }

  #put(number: number, events: number): void {
    const counted = this.#counted;
    putBytes(counted.lastIds, number * UUID_BYTES, id);
    counted.events[number]! += events;
  }

  #row(number: number, text: string): StreamSummary {
    const [source, stream] = text.split(" ") as [string, string];
    return {
      source,
      stream,
      frontier_event_id: this.#lastEventId(number),
      event_count: this.#counted.events[number]!,
    };
  }

  #lastEventId(number: number): string {
    return uuidText(this.#counted.lastIds, number * UUID_BYTES);
  }

  /** Numbers of all streams in order. */
  #inOrder(): Uint32Array {
    const { keys } = this.#counted;
    if (this.#sorted.length < keys.size) {
      this.#sorted = mergeSorted(keys, this.#sorted, sortedFrom(keys, this.#sorted.length));
    }
    return this.#sorted;
  }
}

/** Puts the key of a stream; returns its size. */
function putKey(source: string, stream: string): number {
  assert(source.length + stream.length < key.length, "names are within their limit");
  const sourceEnd = putText(key, 0, source);
  key[sourceEnd] = SPACE;
  return putText(key, sourceEnd + 1, stream);
}

/** Puts a short ASCII text; returns where it ends. A call of the runtime takes longer. */
function putText(into: Uint8Array, at: number, text: string): number {
  for (let place = 0; place < text.length; place++) into[at + place] = text.charCodeAt(place);
  return at + text.length;
}

/** Numbers of the keys from one on, in order. */
function sortedFrom(keys: KeyTable, first: number): Uint32Array {
  const numbers = new Uint32Array(keys.size - first);
  for (let place = 0; place < numbers.length; place++) numbers[place] = first + place;
  sortKeys(keys, numbers);
  return numbers;
}

function mergeSorted(keys: KeyTable, left: Uint32Array, right: Uint32Array) {
  const merged = new Uint32Array(left.length + right.length);
  let place = 0;
  let rightPlace = 0;
  for (const number of left) {
    while (rightPlace < right.length && keys.compare(right[rightPlace]!, number) < 0) {
      merged[place++] = right[rightPlace++]!;
    }
    merged[place++] = number;
  }
  merged.set(right.subarray(rightPlace), place);
  return merged;
}

/** First place whose key is after `after` and not before `prefix`. */
function firstPlace(keys: KeyTable, sorted: Uint32Array, after: string, prefix: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const text = keys.textOf(sorted[middle]!);
    if (text <= after || text < prefix) low = middle + 1;
    else high = middle;
  }
  return low;
}
