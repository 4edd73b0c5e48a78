/** Finds streams in the stream index of a segment, whose blocks are mostly in a cache. */
import type { StreamCursor, StreamEntry } from "../read/stream_counts.ts";
import {
  type BlockPlace,
  isSourceKey,
  type StreamBlock,
  type StreamIndexBlock,
} from "./stream_index.ts";

/** The blocks of a stream index, wherever they come from. */
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

/** Goes over the streams of a segment; entries of whole sources are left out. */
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

  /** Stands at the first stream from here on; false when the block has none. */
  #settle(): boolean {
    let key = this.#block?.keyAt(this.#place);
    while (key !== undefined && isSourceKey(key)) key = this.#block?.keyAt(++this.#place);
    this.#key = key ?? null;
    return key !== undefined;
  }
}
