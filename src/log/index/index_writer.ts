/** Writes an index from sorted parts, in constant memory but for its filter and directories. */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import { assert } from "../../assert.ts";
import type { StoredEvent } from "../line/stored_event.ts";
import { FILTER_BLOCK_BYTES, KeyFilter } from "../line/key_filter.ts";
import { mergedStreams, StreamCounts, type StreamEntry } from "../read/stream_counts.ts";
import {
  encodeTrailer,
  NO_COVERAGE,
  PAGE_BYTES,
  PAGE_CRC_START,
  PAGE_ENTRIES,
  type Trailer,
} from "./index_format.ts";
import { ENTRY_BYTES, EntryList, joined } from "./entries.ts";
import { BlockEncoder, type ChildRow } from "./stream_blocks.ts";
import { batchHash, type FilteredColumn, streamHash, valueHash } from "./key_hash.ts";

type Parts<Part> = Iterable<Part> | AsyncIterable<Part>;

export interface IndexContents {
  /** Lowercase hex digits; see `Trailer`. */
  coverage: string;
  /** The number of batches, each of which has one key in `identities`. */
  batches: number;
  /** The streams and sources in order. */
  streams: Parts<readonly StreamEntry[]>;
  /** Sorted distinct entries of batches, streams of a source, and sources. */
  identities: Parts<BigUint64Array>;
  /** Sorted distinct entries of record keys, and of streams of any source. */
  locations: Parts<BigUint64Array>;
  /** Size of the filter, in whole blocks; 0 for none. The default has FILTER_BITS_PER_KEY. */
  filterBytes?: number | undefined;
}

/**
 * Of absent keys, 1 in 180 passes a small filter, and 1 in 30 a large one. A log has up to 21 small
 * ones, which take little memory (Dayan et al., "Monkey", SIGMOD 2017).
 */
const FILTER_BITS_PER_KEY = { small: 12, large: 8 };
const SMALL_FILTER_KEYS_MAX = 16 * 1024 * 1024;
/** A larger run has fewer bits for each key: with 2, four absent keys in ten pass. */
const FILTER_BYTES_MAX = 64 * 1024 * 1024;

/** Receives the bytes of an index in order; they don't change afterwards. */
export type WriteBytes = (bytes: Buffer) => Promise<void> | void;

export async function writeIndex(contents: IndexContents, write: WriteBytes): Promise<void> {
  const { coverage, batches } = contents;
  const tree = await writeTree(contents.streams, write);
  const keys = batches + tree.streams;
  const filter = new KeyFilter(
    Buffer.alloc(contents.filterBytes ?? defaultFilterBytes(keys)),
    keys,
  );
  const identities = await writePages(contents.identities, write, filter);
  await write(filter.bytes);
  const locations = await writePages(contents.locations, write);
  const directories = Buffer.concat([identities.directory, locations.directory]);
  await write(directories);
  await write(encodeTrailer({
    ...{ coverage, batches, ...tree },
    ...{ identities: identities.entries, locations: locations.entries },
    ...{ filterBytes: filter.bytes.length, filterCrc: crc32(filter.bytes) },
    directoriesCrc: crc32(directories),
  }));
}

/** Returns the size of a filter over so many distinct keys. */
function defaultFilterBytes(keys: number): number {
  const bitsPerKey = FILTER_BITS_PER_KEY[keys > SMALL_FILTER_KEYS_MAX ? "large" : "small"];
  const blocks = Math.ceil(keys * bitsPerKey / (8 * FILTER_BLOCK_BYTES));
  return Math.min(FILTER_BLOCK_BYTES * blocks, FILTER_BYTES_MAX);
}

/** Writes the pages of a table, of which only the last one need not be full. */
async function writePages(
  parts: Parts<BigUint64Array>,
  write: WriteBytes,
  filter?: KeyFilter,
): Promise<{ entries: number; directory: Buffer }> {
  let entries = 0;
  const firstWords: number[] = [];
  const writePage = async (page: BigUint64Array) => {
    const bytes = Buffer.alloc(PAGE_BYTES);
    bytes.set(new Uint8Array(page.buffer, page.byteOffset, page.byteLength));
    bytes.writeUInt32LE(crc32(bytes.subarray(0, PAGE_CRC_START)), PAGE_CRC_START);
    firstWords.push(bytes.readUInt32LE(ENTRY_BYTES / 2));
    await write(bytes);
  };
  let rest: BigUint64Array = new BigUint64Array();
  for await (const part of parts) {
    entries += part.length;
    if (filter !== undefined) addTo(filter, part);
    rest = joined([rest, part]);
    for (; rest.length >= PAGE_ENTRIES; rest = rest.subarray(PAGE_ENTRIES)) {
      await writePage(rest.subarray(0, PAGE_ENTRIES));
    }
  }
  if (rest.length > 0) await writePage(rest);
  return { entries, directory: Buffer.from(Uint32Array.from(firstWords).buffer) };
}

/** Adds the keys of entries to a filter, which may be empty. */
function addTo(filter: KeyFilter, entries: BigUint64Array): void {
  if (filter.bytes.length === 0) return;
  const pairs = new Uint32Array(entries.buffer, entries.byteOffset, 2 * entries.length);
  for (let at = 0; at < pairs.length; at += 2) filter.add(pairs[at + 1]!, pairs[at]!);
}

type WrittenTree = Pick<Trailer, "streams" | "treeBytes" | "rootBytes" | "height">;

/** Writes the leaves, then each level of inner blocks, up to a single block. */
async function writeTree(
  streams: IndexContents["streams"],
  write: WriteBytes,
): Promise<WrittenTree> {
  const written: WrittenTree = { streams: 0, treeBytes: 0, rootBytes: 0, height: 1 };
  const block = new BlockEncoder();
  const writeLevel = async <Row>(parts: Parts<readonly Row[]>, add: (row: Row) => void) => {
    const places: ChildRow[] = [];
    const endBlock = async () => {
      const key = block.lastKey;
      const bytes = block.finish();
      places.push({ key, start: written.treeBytes, bytes: bytes.length });
      written.treeBytes += bytes.length;
      await write(bytes);
    };
    for await (const rows of parts) {
      for (const row of rows) {
        add(row);
        if (block.isFull) await endBlock();
      }
    }
    if (block.lastKey !== "" || places.length === 0) await endBlock();
    return places;
  };
  let places = await writeLevel(streams, (entry) => {
    assert(entry.key > block.lastKey, "streams must be sorted");
    block.addStream(entry);
    written.streams += 1;
  });
  for (; places.length > 1; written.height += 1) {
    places = await writeLevel([places], (child) => block.addChild(child));
  }
  written.rootBytes = places[0]!.bytes;
  return written;
}

type IndexedEvent = Pick<StoredEvent, "stream" | "recordKey" | "kind">;

/**
 * Builds the index of one segment. The writer stores it behind the row groups; `verify`
 * compares it with the one in the file.
 */
export class IndexBuilder {
  readonly #streams = new StreamCounts();
  readonly #identities = new EntryList();
  readonly #locations = new EntryList();
  /** Values that the current row group is known to have. */
  readonly #known: Record<FilteredColumn, Set<string>> = {
    record_key: new Set(),
    stream: new Set(),
    source: new Set(),
    kind: new Set(),
  };
  /** The streams in the current row group, by source. */
  readonly #rowGroupStreams = new Map<string, Map<string, Omit<StreamEntry, "key">>>();
  #batches = 0;
  #rowGroup = 0;

  /** Adds a batch that starts in the current row group. */
  addBatch(source: string, batchId: string): void {
    this.#batches += 1;
    this.#identities.add(batchHash(source, batchId), this.#rowGroup);
  }

  /** Adds an event to the current row group. */
  addEvent(source: string, event: IndexedEvent, lastEventId: string): void {
    const { stream } = event;
    this.#addValue("record_key", event.recordKey);
    this.#addValue("kind", event.kind);
    let streams = this.#rowGroupStreams.get(source);
    if (streams === undefined) this.#rowGroupStreams.set(source, streams = new Map());
    const counted = streams.get(stream);
    if (counted === undefined) streams.set(stream, { events: 1, lastEventId });
    else {
      counted.events += 1;
      counted.lastEventId = lastEventId;
    }
  }

  /** Adds a value by which readers filter. */
  #addValue(column: FilteredColumn, value: string): void {
    const known = this.#known[column];
    if (known.has(value)) return;
    known.add(value);
    this.#locations.add(valueHash(column, value), this.#rowGroup);
  }

  /** Counts streams, which costs less once per row group than once per event. */
  endRowGroup(): void {
    for (const [source, streams] of this.#rowGroupStreams) {
      this.#addValue("source", source);
      for (const [stream, { events, lastEventId }] of streams) {
        this.#addValue("stream", stream);
        this.#streams.add(source, stream, events, lastEventId);
        this.#streams.add(source, "", events, lastEventId);
      }
    }
    this.#rowGroupStreams.clear();
    for (const known of Object.values(this.#known)) known.clear();
    this.#rowGroup += 1;
  }

  /**
   * Returns the index. Called once, after the last event.
   * @param filterBytes see `IndexContents`.
   */
  async finish(filterBytes?: number): Promise<Buffer> {
    const streams = [];
    for await (const block of mergedStreams([this.#streams.snapshot()], "")) streams.push(...block);
    // Where in the segment a stream is, `locations` says.
    for (const { key } of streams) this.#identities.add(streamHash(key), 0);
    const pieces: Buffer[] = [];
    await writeIndex({
      coverage: NO_COVERAGE,
      batches: this.#batches,
      streams: [streams],
      identities: [this.#identities.sorted()],
      locations: [this.#locations.sorted()],
      filterBytes,
    }, (bytes) => void pieces.push(bytes));
    return Buffer.concat(pieces);
  }
}
