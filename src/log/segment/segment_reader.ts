/**
 * Reads sealed history. Opening reads the footer and no row; a row group is
 * decoded as a whole, into the lines that were sealed; bounds and filters tell which ones need not
 * be read.
 */
import { Buffer } from "node:buffer";
import { BloomCache, bloomKey, type ColumnFilters, type FilterSource } from "./bloom_cache.ts";
import {
  blockMayContain,
  type BloomFilter,
  decodeBloomFilter,
  mayContain,
} from "../parquet/bloom_filter.ts";
import type { FileRange } from "../parquet/file_metadata.ts";
import type { ColumnValues } from "../parquet/column_values.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import { type DecodeMemory, withDecodeMemory } from "../parquet/decode_memory.ts";
import { findBatch } from "./segment_batches.ts";
import { decodeColumn, type DecodeOptions } from "./segment_column.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { readRange } from "../parquet/read_range.ts";
import { checkKeyPages, KEY_PAGE_BYTES, keyPlace } from "./key_filter.ts";
import {
  type ColumnPlace,
  readFooter,
  readRowGroups,
  type RowGroup,
  type SegmentFooter,
} from "./segment_footer.ts";
import { LINE_COLUMN_NAMES, type RowGroupCursor } from "./row_group_cursor.ts";
import {
  assembleLines,
  type AssembleOptions,
  type LineColumns,
  type LineMemory,
} from "./segment_lines.ts";
import type { SegmentMetadata } from "./segment_metadata.ts";
import {
  type ColumnName,
  columnNumber,
  FILTERED_COLUMNS,
  type FilteredColumn,
} from "./segment_schema.ts";
import {
  type BlockPlace,
  STREAM_BLOCK_BYTES_MAX,
  StreamBlock,
  StreamIndexBlock,
} from "./stream_index.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";
import type { EventFilter } from "../line/stored_line.ts";
import { type Hash64, xxhash64 } from "../parquet/xxhash64.ts";

export type { RowGroup } from "./segment_footer.ts";

/** Bytes between two columns that are read with them: another read would cost more. */
const READ_GAP_BYTES_MAX = 64 * 1024;

/**
 * Those over the batch ids of a segment are among them up to this size, with batches of 50 events
 * or more. Larger ones are asked in the file: only where the filter over all keys of the segment
 * has let a batch pass.
 */
const BATCH_FILTERS_KEPT_BYTES_MAX = 16 * 1024;

const NO_LINES = Buffer.alloc(0);

/**
 * Opens the segment at `path` and reads its footer.
 * @param blooms where its Bloom filters are kept; shared by the segments of a log.
 * @throws {SegmentError} when the file is no segment.
 */
export async function openSegment(
  storage: Storage,
  path: string,
  blooms: BloomCache = new BloomCache(),
): Promise<Segment> {
  const file = await storage.open(path, "read");
  try {
    const sizeBytes = await file.size();
    const footer = await named(path, () => readFooter(file, sizeBytes));
    return new Segment({ path, file, sizeBytes, footer, blooms });
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Whether a row group may hold what is looked for. */
type RowGroupTest = (number: number) => boolean;

interface OpenedSegment {
  path: string;
  file: StorageFile;
  sizeBytes: number;
  footer: SegmentFooter;
  blooms: BloomCache;
}

/** A segment that is open to be read. All its methods may be called at the same time. */
export class Segment {
  readonly path: string;
  readonly sizeBytes: number;
  readonly #file: StorageFile;
  readonly #footer: SegmentFooter;
  readonly #blooms: BloomCache;
  #rowGroups: readonly RowGroup[] | null = null;
  #filters: Record<FilteredColumn, FilterSource> | null = null;

  constructor({ path, file, sizeBytes, footer, blooms }: OpenedSegment) {
    this.path = path;
    this.sizeBytes = sizeBytes;
    this.#file = file;
    this.#footer = footer;
    this.#blooms = blooms;
  }

  /** What it says of itself. */
  get metadata(): SegmentMetadata {
    return this.#footer.metadata;
  }

  /** From oldest to newest. @throws {SegmentError} */
  get rowGroups(): readonly RowGroup[] {
    return this.#rowGroups ??= this.#decoding(() => readRowGroups(this.#footer));
  }

  /**
   * The stored lines of a row group, each with its LF, in log order.
   * @param rows those whose lines are wanted, increasing; all when left out.
   * @throws {SegmentError}
   */
  async readRowGroup(number: number, rows?: readonly number[]): Promise<Buffer> {
    if (rows?.length === 0) return NO_LINES;
    return await withDecodeMemory(async (memory) => {
      const columns = await this.readColumns(number, LINE_COLUMN_NAMES, { rows, memory });
      return this.assemble(columns as LineColumns);
    });
  }

  /**
   * Opens a row group whose lines are to be read from it step by step. @throws {SegmentError}
   */
  async openRowGroup(number: number, cursor: RowGroupCursor): Promise<void> {
    const rowGroup = this.#rowGroup(number);
    const places = LINE_COLUMN_NAMES.map((name) => rowGroup.columns[columnNumber(name)]!);
    cursor.memory.clear();
    const chunks = await named(this.path, () => readPlaces(this.#file, places, cursor.memory));
    cursor.open(rowGroup, chunks);
  }

  /** Appends the next lines of a row group that is open. @throws {SegmentError} */
  putLines(cursor: RowGroupCursor, into: LineMemory, firstRow: number, endRow: number): void {
    this.#decoding(() => cursor.putLines(into, firstRow, endRow));
  }

  /** The lines that columns make. @throws {SegmentError} */
  assemble(columns: LineColumns, options?: AssembleOptions): Buffer {
    return this.#decoding(() => assembleLines(columns, options));
  }

  /**
   * Decodes columns of a row group.
   * @param names in the order of the schema.
   * @throws {SegmentError}
   */
  async readColumns<Name extends ColumnName>(
    number: number,
    names: readonly Name[],
    options: DecodeOptions = {},
  ): Promise<Record<Name, ColumnValues>> {
    const { rows, columns } = this.#rowGroup(number);
    const places = names.map((name) => columns[columnNumber(name)]!);
    const chunks = await named(this.path, () => readPlaces(this.#file, places, options.memory));
    return this.#decoding(() =>
      Object.fromEntries(
        names.map((name, i) => [
          name,
          decodeColumn(name, chunks[i]!, places[i]!.uncompressedBytes, rows, options),
        ]),
      )
    ) as Record<Name, ColumnValues>;
  }

  /**
   * The row groups from `first` on that may hold an event that passes a filter, in log order: every
   * one that does hold one is among them. @throws {SegmentError}
   */
  async candidates(filter: EventFilter, first = 0): Promise<number[]> {
    const { source, stream, recordKey, kind } = filter;
    const tests = [
      this.#betweenBounds("source", source),
      this.#betweenBounds("stream", stream),
      this.#betweenBounds("kind", kind),
      await this.#inFilters("stream", stream),
      await this.#inFilters("record_key", recordKey),
    ].filter((test) => test !== null);
    const numbers: number[] = [];
    for (let number = first; number < this.rowGroups.length; number++) {
      if (tests.every((mayHold) => mayHold(number))) numbers.push(number);
    }
    return numbers;
  }

  /** Entry of the batch; null when the segment does not hold it. @throws {SegmentError} */
  findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    return findBatch(this, source, batchId);
  }

  /** The index block of its stream index. @throws {SegmentError} */
  readStreamIndex(): Promise<StreamIndexBlock> {
    const { bytes, index_bytes } = this.metadata.stream_index;
    const place = { offset: bytes - index_bytes, bytes: index_bytes };
    return this.#readStreams(place, (block) => new StreamIndexBlock(block));
  }

  /** A block of its stream index. @throws {SegmentError} */
  readStreamBlock(place: BlockPlace): Promise<StreamBlock> {
    return this.#readStreams(place, (block) => {
      if (block.length > STREAM_BLOCK_BYTES_MAX) throw new SegmentError("is too long");
      return new StreamBlock(block);
    });
  }

  /** Bytes [start, end) of the file. @throws {SegmentError} */
  readBytes(start: number, end: number): Promise<Buffer> {
    return this.#read(start, end);
  }

  /** The filter over its keys. @throws {SegmentError} */
  readKeyFilter(): Promise<Buffer> {
    return this.#readKeyPages(0, this.metadata.key_filter.bytes);
  }

  /** Whether it may hold a key, by one page of that filter. @throws {SegmentError} */
  async mayHoldKey(hash: Hash64): Promise<boolean> {
    const { page, block } = keyPlace(this.metadata.key_filter.bytes, hash);
    return blockMayContain(await this.#readKeyPages(page, page + KEY_PAGE_BYTES), block, hash);
  }

  /** The row groups that may hold a batch of that id (in UTF-8), by their Bloom filters. */
  async rowGroupsWithBatch(batchId: Uint8Array): Promise<number[]> {
    const hash = xxhash64(batchId);
    const numbers = [...this.rowGroups.keys()];
    if (this.#source("batch_id").sizeBytes <= BATCH_FILTERS_KEPT_BYTES_MAX) {
      const filters = await this.filters("batch_id");
      return numbers.filter((number) => passes(filters, number, hash));
    }
    const asked = await Promise.all(
      this.#filterPlaces("batch_id").map((place) => place === null || this.#asked(place, hash)),
    );
    return numbers.filter((number) => asked[number]);
  }

  /** The Bloom filters of a column, one for each row group. @throws {SegmentError} */
  filters(name: FilteredColumn): Promise<ColumnFilters> {
    return this.#blooms.get(this.#source(name));
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #readStreams<Block>(
    { offset, bytes }: BlockPlace,
    decode: (block: Buffer) => Block,
  ): Promise<Block> {
    const { stream_index } = this.metadata;
    const start = stream_index.offset + offset;
    const where = `${this.path}: a block of the stream index, ${bytes} bytes at byte ${start}`;
    if (offset + bytes > stream_index.bytes) throw new SegmentError(`${where}: not within it`);
    const block = await this.#read(start, start + bytes);
    try {
      return decode(block);
    } catch (error) {
      throw nameError(where, error);
    }
  }

  /** Pages [start, end) of the filter over its keys. */
  async #readKeyPages(start: number, end: number): Promise<Buffer> {
    const { offset } = this.metadata.key_filter;
    const pages = await this.#read(offset + start, offset + end);
    try {
      checkKeyPages(pages);
    } catch (error) {
      throw nameError(`${this.path}: the key filter from byte ${offset + start}`, error);
    }
    return pages;
  }

  #read(start: number, end: number): Promise<Buffer> {
    return named(this.path, () => readRange(this.#file, start, end));
  }

  #rowGroup(number: number): RowGroup {
    const rowGroup = this.rowGroups[number];
    if (rowGroup === undefined) throw new RangeError(`${this.path}: no row group ${number}`);
    return rowGroup;
  }

  /** What tells whether a value lies between the bounds of a row group; null for any value. */
  #betweenBounds(name: ColumnName, value: string | undefined): RowGroupTest | null {
    if (value === undefined) return null;
    const bytes = Buffer.from(value).toString("latin1");
    const place = columnNumber(name);
    return (number) => {
      const { bounds } = this.rowGroups[number]!.columns[place]!;
      return bounds === null || bounds.min <= bytes && bytes <= bounds.max;
    };
  }

  /** What tells whether the Bloom filter of a row group lets a value pass; null for any value. */
  async #inFilters(name: FilteredColumn, value: string | undefined): Promise<RowGroupTest | null> {
    if (value === undefined) return null;
    const filters = await this.filters(name);
    const hash = xxhash64(Buffer.from(value));
    return (number) => passes(filters, number, hash);
  }

  #source(name: FilteredColumn): FilterSource {
    this.#filters ??= this.#filterSources();
    return this.#filters[name];
  }

  #filterSources(): Record<FilteredColumn, FilterSource> {
    const sources = FILTERED_COLUMNS.map((name) => [name, this.#filterSource(name)]);
    return Object.fromEntries(sources) as Record<FilteredColumn, FilterSource>;
  }

  #filterSource(name: FilteredColumn): FilterSource {
    const places = this.#filterPlaces(name);
    return {
      key: bloomKey(this.path, name),
      sizeBytes: places.reduce((sum, place) => sum + (place ? place.end - place.start : 0), 0),
      load: async () => {
        const filters = [];
        for (const place of places) {
          filters.push(place === null ? null : await this.#readFilter(place.start, place.end));
        }
        return filters;
      },
    };
  }

  /** Of each row group; null where it has none. */
  #filterPlaces(name: FilteredColumn): ColumnPlace["filter"][] {
    return this.rowGroups.map(({ columns }) => columns[columnNumber(name)]!.filter);
  }

  /** Asks a Bloom filter in the file for the value of a hash. */
  async #asked({ start, end }: FileRange, hash: Hash64): Promise<boolean> {
    return mayContain(await this.#readFilter(start, end), hash);
  }

  async #readFilter(start: number, end: number): Promise<BloomFilter> {
    const bytes = await this.#read(start, end);
    return this.#decoding(() => decodeBloomFilter(bytes));
  }

  #decoding<Result>(decode: () => Result): Result {
    try {
      return decode();
    } catch (error) {
      throw nameError(this.path, error);
    }
  }
}

/** Whether the filter of a row group lets the value of a hash pass. */
export function passes(filters: ColumnFilters, number: number, hash: Hash64): boolean {
  const filter = filters[number];
  return filter === null || filter === undefined || mayContain(filter, hash);
}

/** Reads the bytes of columns, those that lie close to each other at once. */
async function readPlaces(
  file: StorageFile,
  places: readonly ColumnPlace[],
  memory?: DecodeMemory,
): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  for (let first = 0; first < places.length;) {
    let next = first + 1;
    while (next < places.length && areClose(places[next - 1]!, places[next]!)) next += 1;
    const { start } = places[first]!;
    const bytes = await readRange(file, start, places[next - 1]!.end, memory);
    for (const place of places.slice(first, next)) {
      chunks.push(bytes.subarray(place.start - start, place.end - start));
    }
    first = next;
  }
  return chunks;
}

/** Whether to read what lies between two columns costs less than to read twice. */
function areClose(column: ColumnPlace, next: ColumnPlace): boolean {
  return next.start >= column.end && next.start - column.end <= READ_GAP_BYTES_MAX;
}

/** Puts the path in front of what an error says of the file. */
async function named<Result>(path: string, read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    throw nameError(path, error);
  }
}

function nameError(path: string, error: unknown): unknown {
  if (!(error instanceof SegmentError)) return error;
  return new SegmentError(`${path}: ${error.message}`, { cause: error, fault: error.fault });
}
