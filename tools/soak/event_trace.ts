/**
 * A sequence of observed events, each stored as 24 bytes: its id and the first bytes of its hash. A
 * million events fit in memory and can be compared as bytes.
 */
import { Buffer } from "node:buffer";
import type { CommittedEvent } from "../../src/event/types.ts";
import { firstIndex } from "../../src/first_index.ts";

const ID_BYTES = 16;
const HASH_BYTES = 8;
/** Size of one event. */
const ENTRY_BYTES = ID_BYTES + HASH_BYTES;
const CAPACITY_MIN = 16;

export class EventTrace {
  #bytes = Buffer.alloc(CAPACITY_MIN * ENTRY_BYTES);
  #length = 0;

  /** Number of events. */
  get length(): number {
    return this.#length;
  }

  add({ event_id, event_hash }: CommittedEvent): void {
    const at = this.#roomForOne();
    idBytes(event_id).copy(this.#bytes, at);
    this.#bytes.write(event_hash, at + ID_BYTES, HASH_BYTES, "hex");
    this.#length += 1;
  }

  /** Adds the event at index `place` in another trace. */
  addFrom(other: EventTrace, place: number): void {
    const at = this.#roomForOne();
    other.#entry(place).copy(this.#bytes, at);
    this.#length += 1;
  }

  /** Returns the id of an event. */
  idAt(place: number): string {
    const hex = this.#entry(place).toString("hex", 0, ID_BYTES);
    const groups = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
    return [...groups, hex.slice(20)].join("-");
  }

  /** Returns the number of events up to an id, inclusive. The trace must be ordered. */
  countThrough(eventId: string): number {
    const wanted = idBytes(eventId);
    return firstIndex(this.#length, (place) => {
      return Buffer.compare(this.#entry(place).subarray(0, ID_BYTES), wanted) > 0;
    });
  }

  /** Returns where this trace first differs from events [start, end) in `other`; -1 if nowhere. */
  firstDifference(other: EventTrace, start: number, end: number): number {
    const [mine, theirs] = [this.#slice(0, this.#length), other.#slice(start, end)];
    if (mine.equals(theirs)) return -1;
    const length = Math.min(mine.length, theirs.length);
    let at = 0;
    while (at < length && mine[at] === theirs[at]) at += 1;
    return Math.floor(at / ENTRY_BYTES);
  }

  /** Returns the offset at which to write the next event. Grows the buffer if it is full. */
  #roomForOne(): number {
    const at = this.#length * ENTRY_BYTES;
    if (at === this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes, Buffer.alloc(at)]);
    return at;
  }

  #entry(place: number): Buffer {
    return this.#slice(place, place + 1);
  }

  #slice(start: number, end: number): Buffer {
    return this.#bytes.subarray(start * ENTRY_BYTES, end * ENTRY_BYTES);
  }
}

function idBytes(eventId: string): Buffer {
  return Buffer.from(eventId.replaceAll("-", ""), "hex");
}
