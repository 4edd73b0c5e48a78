/**
 * The lists in the footer of a segment, of its streams and of its sources: JSON arrays in order of
 * their keys that can be as long as the segment has events. They are read by blocks, so that a
 * lookup costs a few of them and a page those that it shows, whatever the length of the list.
 *
 * A block holds the entries that start in one stretch of LIST_BLOCK_BYTES. Names hold no brace, so
 * that an entry starts at each `{`.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { LIST_BLOCK_BYTES, LIST_ENTRY_BYTES_MAX } from "../../limits.ts";
import { takeUuid, UUID_BYTES, UUID_CHARS, uuidText } from "../line/line_bytes.ts";
import { SegmentError } from "../parquet/segment_error.ts";

export type ListName = "streams" | "sources";

export interface ListEntry {
  /** A source, or `streamKey()` of a stream. */
  key: string;
  lastEventId: string;
  /** Number of events of a stream in the segment; 0 for a source. */
  events: number;
}

/** The 16 bytes of an event id as Latin-1: in the order of ids, and soon compared. */
export type PackedId = string;

/** The id that is packed. */
export function unpackedId(packed: PackedId): string {
  return uuidText(Buffer.from(packed, "latin1"));
}

/** Entries in order. Those of tens of thousands are in memory: as objects they take thrice that. */
export class ListBlock {
  readonly #keys: readonly string[];
  readonly #events: readonly number[];
  /** Of all entries, one after the other. */
  readonly #lastIds: PackedId;

  constructor(entries: readonly ListEntry[]) {
    this.#keys = entries.map(({ key }) => key);
    this.#events = entries.map(({ events }) => events);
    const ids = Buffer.from(entries.map(({ lastEventId }) => lastEventId).join(""), "latin1");
    const packed = Buffer.allocUnsafe(entries.length * UUID_BYTES);
    for (let place = 0; place < entries.length; place++) {
      const isId = takeUuid(ids, place * UUID_CHARS, packed, place * UUID_BYTES);
      assert(isId, "the last event of an entry has a canonical id");
    }
    this.#lastIds = packed.toString("latin1");
  }

  get length(): number {
    return this.#keys.length;
  }

  /** Undefined behind the end. */
  keyAt(place: number): string | undefined {
    return this.#keys[place];
  }

  eventsAt(place: number): number {
    return this.#events[place]!;
  }

  lastIdAt(place: number): PackedId {
    return this.#lastIds.slice(place * UUID_BYTES, (place + 1) * UUID_BYTES);
  }
}

/** The blocks of a list, wherever they come from. */
export interface ListBlocks {
  /** Number of blocks; one at least. */
  count(): Promise<number>;
  /** Key of the first entry of a block; null where it has none, as at the most the last one. */
  firstKey(number: number): Promise<string | null>;
  block(number: number): Promise<ListBlock>;
}

/** One string for a stream; as unambiguous and in the same order as source, then stream. */
export function streamKey(source: string, stream: string): string {
  return `${source} ${stream}`;
}

/** Number of the blocks of a list of that size. */
export function blockCount(listBytes: number): number {
  return Math.max(1, Math.ceil(listBytes / LIST_BLOCK_BYTES));
}

/** The bytes of a list that hold the entries of a block. */
export function blockRange(number: number, listBytes: number): { start: number; end: number } {
  const start = number * LIST_BLOCK_BYTES;
  return { start, end: Math.min(listBytes, start + LIST_BLOCK_BYTES + LIST_ENTRY_BYTES_MAX) };
}

/** The bytes of a list that hold the first entry of a block. */
export function firstRange(number: number, listBytes: number): { start: number; end: number } {
  const start = number * LIST_BLOCK_BYTES;
  return { start, end: Math.min(listBytes, start + 2 * LIST_ENTRY_BYTES_MAX) };
}

const EVENTS = "([1-9][0-9]{0,15})";
const EVENT_ID = "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})";
const NAME = "([a-z0-9_.-]+)";

/** How the entries of a list are spelled, with what follows them, and what they say. */
interface Spelling {
  pattern: RegExp;
  entry(parts: string[]): ListEntry;
}

const SPELLINGS: Record<ListName, Spelling> = {
  streams: {
    pattern: entryPattern(
      `"events":${EVENTS},"last_event_id":"${EVENT_ID}","source":"${NAME}","stream":"${NAME}"`,
    ),
    entry: ([, events, lastEventId, source, stream]) => ({
      key: streamKey(source!, stream!),
      lastEventId: lastEventId!,
      events: Number(events),
    }),
  },
  sources: {
    pattern: entryPattern(`"last_event_id":"${EVENT_ID}","source":"${NAME}"`),
    entry: ([, lastEventId, source]) => ({ key: source!, lastEventId: lastEventId!, events: 0 }),
  },
};

function entryPattern(members: string): RegExp {
  return new RegExp(`\\{${members}\\}(?:,|$)`, "y");
}

/** A block, from the bytes of its range. @throws {SegmentError} */
export function decodeBlock(name: ListName, bytes: Buffer): ListBlock {
  const { pattern } = SPELLINGS[name];
  const text = bytes.toString("latin1");
  const entries: ListEntry[] = [];
  let at = text.indexOf("{");
  while (at >= 0 && at < Math.min(LIST_BLOCK_BYTES, text.length)) {
    const next = entryAt(name, text, at);
    const last = entries.at(-1);
    if (last !== undefined && next.key <= last.key) throw malformed(name);
    entries.push(next);
    at = pattern.lastIndex;
  }
  return new ListBlock(entries);
}

/** Key of the first entry of a block, from the bytes of its range. @throws {SegmentError} */
export function decodeFirstKey(name: ListName, bytes: Buffer): string | null {
  const text = bytes.toString("latin1");
  const at = text.indexOf("{");
  return at < 0 ? null : entryAt(name, text, at).key;
}

function entryAt(name: ListName, text: string, at: number): ListEntry {
  const { pattern, entry } = SPELLINGS[name];
  pattern.lastIndex = at;
  const parts = pattern.exec(text);
  if (parts === null) throw malformed(name);
  return entry(parts);
}

function malformed(name: ListName): SegmentError {
  return new SegmentError(`the list of its ${name} is malformed`);
}

/** The entry of a key; null when the list has none. @throws {SegmentError} */
export async function findEntry(list: ListBlocks, key: string): Promise<ListEntry | null> {
  const cursor = await seekEntry(list, key);
  return cursor.key === key ? cursor.current : null;
}

/** A cursor at the first entry whose key is not before `key`. @throws {SegmentError} */
export async function seekEntry(list: ListBlocks, key: string): Promise<ListCursor> {
  const blocks = await list.count();
  // The last block that starts at or before the key, or the first one.
  let low = 0;
  let high = blocks;
  while (high - low > 1) {
    const middle = (low + high) >>> 1;
    const first = await list.firstKey(middle);
    if (first !== null && first <= key) low = middle;
    else high = middle;
  }
  const cursor = new ListCursor(list, blocks, low, await list.block(low));
  while (cursor.key !== null && cursor.key < key) {
    if (!cursor.skip()) await cursor.nextBlock();
  }
  return cursor;
}

/** A cursor over entries that are in memory. */
export function cursorOver(entries: readonly ListEntry[]): ListCursor {
  return new ListCursor(null, 1, 0, new ListBlock(entries));
}

const NO_ENTRIES = new ListBlock([]);

/** Goes over a list from an entry on. */
export class ListCursor {
  /** Null where there is no other block. */
  readonly #list: Pick<ListBlocks, "block"> | null;
  readonly #blocks: number;
  #number: number;
  #block: ListBlock;
  #place = 0;

  constructor(
    list: Pick<ListBlocks, "block"> | null,
    blocks: number,
    number: number,
    block: ListBlock,
  ) {
    this.#list = list;
    this.#blocks = blocks;
    this.#number = number;
    this.#block = block;
  }

  /** Key of the entry that it stands at; null at the end. */
  get key(): string | null {
    return this.#block.keyAt(this.#place) ?? null;
  }

  /** Not at the end. */
  get events(): number {
    return this.#block.eventsAt(this.#place);
  }

  /** Not at the end. */
  get lastId(): PackedId {
    return this.#block.lastIdAt(this.#place);
  }

  /** The entry that it stands at; null at the end. */
  get current(): ListEntry | null {
    const { key } = this;
    if (key === null) return null;
    return { key, lastEventId: unpackedId(this.lastId), events: this.events };
  }

  /** Goes on to the next entry. @throws {SegmentError} */
  async next(): Promise<void> {
    if (!this.skip()) await this.nextBlock();
  }

  /** Goes on to the next entry of the block. @returns false when the next block is to be read. */
  skip(): boolean {
    this.#place += 1;
    return this.#place < this.#block.length;
  }

  /** Goes on to the next block, or to the end. @throws {SegmentError} */
  async nextBlock(): Promise<void> {
    const last = this.#block.keyAt(this.#block.length - 1);
    this.#number += 1;
    this.#place = 0;
    const isBehind = this.#list === null || this.#number >= this.#blocks;
    this.#block = isBehind ? NO_ENTRIES : await this.#list.block(this.#number);
    const first = this.#block.keyAt(0);
    const isCut = first === undefined && this.#number < this.#blocks - 1;
    if (isCut || (first !== undefined && last !== undefined && first <= last)) {
      throw new SegmentError("a list in its footer is out of order");
    }
  }
}
