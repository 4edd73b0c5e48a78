/**
 * The stream index of a segment (docs/format.md): for each source and each stream, how many events
 * the segment holds and which is the last one. A sorted table, as in LevelDB: entries in byte
 * order of their keys, in blocks of about 4 KiB, then one index block with the first key and the
 * place of each. A lookup reads the index block and one other. Each block ends in its CRC-32.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { assert } from "../../assert.ts";
import { firstIndex } from "../../first_index.ts";
import { NAME_BYTES_MAX } from "../../limits.ts";
import { takeUuid, UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { type StreamCursor, type StreamEntry, streamKey } from "../read/stream_counts.ts";

/** A block ends with the entry that brings it to this size. */
const BLOCK_BYTES = 4 * 1024;
const CRC_BYTES = 4;
/** Two names and the space between them. */
const KEY_BYTES_MAX = 2 * NAME_BYTES_MAX + 1;
const KEY_LENGTH_BYTES = 2;
/** The number of events, then the last id. */
const STREAM_VALUE_BYTES = 4 + UUID_BYTES;
/** Offset in the table, then the size. */
const INDEX_VALUE_BYTES = 4 + 4;
/** Longest block of entries that a reader accepts. */
export const STREAM_BLOCK_BYTES_MAX: number = BLOCK_BYTES + KEY_LENGTH_BYTES + KEY_BYTES_MAX +
  STREAM_VALUE_BYTES + CRC_BYTES;

/** Where a block is in the table. */
export interface BlockPlace {
  offset: number;
  bytes: number;
}

/** The key of the entry of a whole source, which comes before those of its streams. */
export function sourceKey(source: string): string {
  return streamKey(source, "");
}

/** The key of the source of a stream. */
export function sourceKeyOf(key: string): string {
  return key.slice(0, key.indexOf(" ") + 1);
}

export function isSourceKey(key: string): boolean {
  return key.endsWith(" ");
}

/** The table of some entries in order, block by block; the last one is the index block. */
export function* streamIndexBlocks(entries: Iterable<StreamEntry>): Generator<Buffer, void> {
  const block = new BlockBuilder();
  const index = new BlockBuilder();
  let firstKey = "";
  let offset = 0;
  const endBlock = () => {
    const bytes = block.finish();
    const place = Buffer.alloc(INDEX_VALUE_BYTES);
    place.writeUInt32LE(offset, 0);
    place.writeUInt32LE(bytes.length, 4);
    index.add(firstKey, place);
    offset += bytes.length;
    return bytes;
  };
  for (const entry of entries) {
    if (block.sizeBytes === 0) firstKey = entry.key;
    block.add(entry.key, streamValue(entry));
    if (block.sizeBytes >= BLOCK_BYTES) yield endBlock();
  }
  if (block.sizeBytes > 0) yield endBlock();
  yield index.finish();
}

function streamValue({ events, lastEventId }: StreamEntry): Buffer {
  const value = Buffer.alloc(STREAM_VALUE_BYTES);
  value.writeUInt32LE(events, 0);
  assert(takeUuid(Buffer.from(lastEventId, "latin1"), 0, value, 4), "an event id is a UUID");
  return value;
}

class BlockBuilder {
  #pieces: Buffer[] = [];
  #sizeBytes = 0;

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  add(key: string, value: Buffer): void {
    assert(key.length <= KEY_BYTES_MAX, "names are within their limit");
    const length = Buffer.alloc(KEY_LENGTH_BYTES);
    length.writeUInt16LE(key.length);
    this.#pieces.push(length, Buffer.from(key, "latin1"), value);
    this.#sizeBytes += length.length + key.length + value.length;
  }

  /** The block with its CRC-32. The builder is empty then. */
  finish(): Buffer {
    const entries = Buffer.concat(this.#pieces);
    const crc = Buffer.alloc(CRC_BYTES);
    crc.writeUInt32LE(crc32(entries));
    this.#pieces = [];
    this.#sizeBytes = 0;
    return Buffer.concat([entries, crc]);
  }
}

/** Entries in order. They stay bytes: most of a block is passed over, not looked at. */
class SortedBlock {
  protected readonly bytes: Buffer;
  /** Where each entry starts, then where the last one ends. */
  readonly #starts: Uint32Array;
  readonly #valueBytes: number;

  /** @throws {SegmentError} when the bytes do not match their CRC-32, or are no such block. */
  constructor(bytes: Buffer, valueBytes: number) {
    const end = bytes.length - CRC_BYTES;
    if (end < 0 || crc32(bytes.subarray(0, end)) !== bytes.readUInt32LE(end)) {
      throw new SegmentError("does not match its CRC-32");
    }
    const starts = [0];
    for (let at = 0; at < end; starts.push(at)) {
      const keyEnd = at + KEY_LENGTH_BYTES + (at + 1 < end ? bytes.readUInt16LE(at) : end);
      at = keyEnd + valueBytes;
      if (at > end) throw new SegmentError("has a malformed entry");
    }
    this.bytes = bytes;
    this.#starts = Uint32Array.from(starts);
    this.#valueBytes = valueBytes;
  }

  /** Memory it takes. */
  get sizeBytes(): number {
    return this.bytes.length + this.#starts.byteLength;
  }

  /** Number of entries. */
  get length(): number {
    return this.#starts.length - 1;
  }

  /** Undefined past the end. */
  keyAt(place: number): string | undefined {
    if (place >= this.length) return undefined;
    const start = this.#starts[place]! + KEY_LENGTH_BYTES;
    return this.bytes.toString("latin1", start, this.valueStart(place));
  }

  /** Place of the first entry whose key is not before `key`. */
  lowerBound(key: string): number {
    return firstIndex(this.length, (place) => this.keyAt(place)! >= key);
  }

  protected valueStart(place: number): number {
    return this.#starts[place + 1]! - this.#valueBytes;
  }
}

/** A block of entries. */
export class StreamBlock extends SortedBlock {
  constructor(bytes: Buffer) {
    super(bytes, STREAM_VALUE_BYTES);
  }

  eventsAt(place: number): number {
    return this.bytes.readUInt32LE(this.valueStart(place));
  }

  lastEventIdAt(place: number): string {
    return uuidText(this.bytes, this.valueStart(place) + 4);
  }
}

/** The index block. */
export class StreamIndexBlock extends SortedBlock {
  constructor(bytes: Buffer) {
    super(bytes, INDEX_VALUE_BYTES);
  }

  placeAt(place: number): BlockPlace {
    const start = this.valueStart(place);
    return { offset: this.bytes.readUInt32LE(start), bytes: this.bytes.readUInt32LE(start + 4) };
  }

  /** Number of the only block that can hold a key. */
  blockOf(key: string): number {
    const place = this.lowerBound(key);
    return this.keyAt(place) === key ? place : Math.max(0, place - 1);
  }
}

/** The blocks of a stream index, read from a file or a cache. */
export interface StreamIndex {
  index(): Promise<StreamIndexBlock>;
  block(place: BlockPlace): Promise<StreamBlock>;
}

/** The entry of a key; null when there is none. @throws {SegmentError} */
export async function findEntry(streams: StreamIndex, key: string): Promise<StreamEntry | null> {
  const index = await streams.index();
  if (index.length === 0) return null;
  const block = await streams.block(index.placeAt(index.blockOf(key)));
  const place = block.lowerBound(key);
  if (block.keyAt(place) !== key) return null;
  return { key, events: block.eventsAt(place), lastEventId: block.lastEventIdAt(place) };
}

/** A cursor at the first stream whose key is not before `key`. @throws {SegmentError} */
export async function seekStream(streams: StreamIndex, key: string): Promise<StreamCursor> {
  const cursor = new BlockCursor(streams, await streams.index());
  await cursor.seek(key);
  return cursor;
}

/** Iterates over the streams of a segment, skipping the entries of whole sources. */
class BlockCursor implements StreamCursor {
  readonly #streams: StreamIndex;
  readonly #index: StreamIndexBlock;
  #number = 0;
  #block: StreamBlock | null = null;
  #place = 0;
  #key: string | null = null;

  constructor(streams: StreamIndex, index: StreamIndexBlock) {
    this.#streams = streams;
    this.#index = index;
  }

  get key(): string | null {
    return this.#key;
  }

  get events(): number {
    return this.#block!.eventsAt(this.#place);
  }

  get lastEventId(): string {
    return this.#block!.lastEventIdAt(this.#place);
  }

  async seek(key: string): Promise<void> {
    await this.#enter(this.#index.blockOf(key));
    this.#place = this.#block?.lowerBound(key) ?? 0;
    if (!this.#settle()) await this.nextBlock();
  }

  next(): boolean {
    this.#place += 1;
    return this.#settle();
  }

  /** @throws {SegmentError} */
  async nextBlock(): Promise<void> {
    do await this.#enter(this.#number + 1); while (this.#block !== null && !this.#settle());
  }

  async #enter(number: number): Promise<void> {
    const isThere = number < this.#index.length;
    this.#block = isThere ? await this.#streams.block(this.#index.placeAt(number)) : null;
    this.#number = number;
    this.#place = 0;
    this.#key = null;
  }

  /** Moves to the first stream from here on; false when the block has none. */
  #settle(): boolean {
    let key = this.#block?.keyAt(this.#place);
    while (key !== undefined && isSourceKey(key)) key = this.#block?.keyAt(++this.#place);
    this.#key = key ?? null;
    return key !== undefined;
  }
}
