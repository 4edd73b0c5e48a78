/**
 * Reads sealed history. Opening reads the footer and no row. A row group is decoded whole, into the
 * lines that were sealed; `row_group_pruning.ts` tells which ones a filter needs.
 */
import { Buffer } from "node:buffer";
import { blockMayContain } from "../parquet/bloom_filter.ts";
import { decodeColumn } from "../parquet/column_decoder.ts";
import { type ColumnValues, isValueAt } from "../parquet/column_values.ts";
import { readRange, readRanges } from "../parquet/read_range.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { Hash64 } from "../parquet/xxhash64.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";
import { checkKeyPages, KEY_PAGE_BYTES, keyPlace } from "./key_filter.ts";
import { assembleLines, LINE_COLUMN_NAMES, type LineColumns } from "./line_assembler.ts";
import {
  type ColumnFilters,
  type FilterCache,
  filtersKey,
  newFilterCache,
  readFilters,
} from "./bloom_filter_cache.ts";
import { readFooter, readRowGroups, type RowGroup, type SegmentFooter } from "./segment_footer.ts";
import type { SegmentMetadata } from "./segment_metadata.ts";
import {
  columnFormat,
  type ColumnName,
  columnNumber,
  type FilteredColumn,
} from "./segment_schema.ts";
import {
  type BlockPlace,
  STREAM_BLOCK_BYTES_MAX,
  StreamBlock,
  StreamIndexBlock,
} from "./stream_index.ts";

/**
 * Opens the segment at `path` and reads its footer.
 * @param filterCache caches its Bloom filters; shared by the segments of a log.
 * @throws {SegmentError} when the file is no segment.
 */
export async function openSegment(
  storage: Storage,
  path: string,
  filterCache: FilterCache = newFilterCache(),
): Promise<Segment> {
  const file = await storage.open(path, "read");
  try {
    const sizeBytes = await file.size();
    const footer = await named(path, () => readFooter(file, sizeBytes));
    return new Segment(path, file, sizeBytes, footer, filterCache);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** An open segment. Its methods may be called concurrently. */
export class Segment {
  readonly path: string;
  readonly sizeBytes: number;
  readonly #file: StorageFile;
  readonly #footer: SegmentFooter;
  readonly #filterCache: FilterCache;
  #rowGroups: readonly RowGroup[] | null = null;

  constructor(
    path: string,
    file: StorageFile,
    sizeBytes: number,
    footer: SegmentFooter,
    filterCache: FilterCache,
  ) {
    this.path = path;
    this.sizeBytes = sizeBytes;
    this.#file = file;
    this.#footer = footer;
    this.#filterCache = filterCache;
  }

  get metadata(): SegmentMetadata {
    return this.#footer.metadata;
  }

  /** From oldest to newest. @throws {SegmentError} */
  get rowGroups(): readonly RowGroup[] {
    return this.#rowGroups ??= this.#decoding(() => readRowGroups(this.#footer));
  }

  /**
   * The stored lines of a row group, each with its LF, in log order.
   * @param memory as for `assembleLines()`.
   * @throws {SegmentError}
   */
  async readRowGroup(number: number, memory?: Buffer): Promise<Buffer> {
    return this.assemble(await this.readColumns(number, LINE_COLUMN_NAMES), memory);
  }

  /** The lines that columns make. @param memory as for `assembleLines()`. @throws {SegmentError} */
  assemble(columns: LineColumns, memory?: Buffer): Buffer {
    return this.#decoding(() => assembleLines(columns, memory));
  }

  /**
   * Decodes columns of a row group.
   * @param names in the order of the schema.
   * @throws {SegmentError}
   */
  async readColumns<Name extends ColumnName>(
    number: number,
    names: readonly Name[],
  ): Promise<Record<Name, ColumnValues>> {
    const rowGroup = this.rowGroups[number];
    if (rowGroup === undefined) throw new RangeError(`${this.path}: no row group ${number}`);
    const { rows, columns } = rowGroup;
    const places = names.map((name) => columns[columnNumber(name)]!);
    return await named(this.path, async () => {
      const chunks = await readRanges(this.#file, places);
      const decoded = names.map((name, i) => {
        const { start: offset, uncompressedBytes } = places[i]!;
        const pages = { bytes: chunks[i]!, offset, rows, uncompressedBytes };
        return [name, decodeColumn(columnFormat(name), pages)];
      });
      return Object.fromEntries(decoded) as Record<Name, ColumnValues>;
    });
  }

  /** Whether a row group holds an event of that key: decodes one column. @throws {SegmentError} */
  async hasRecordKey(number: number, recordKey: string): Promise<boolean> {
    const { record_key } = await this.readColumns(number, ["record_key"]);
    const bytes = Buffer.from(recordKey);
    return record_key.starts.some((_, row) => isValueAt(record_key, row, bytes));
  }

  /** The Bloom filters of a column, one for each row group. @throws {SegmentError} */
  filters(name: FilteredColumn): Promise<ColumnFilters> {
    return this.#filterCache.load(filtersKey(this.path, name), () => {
      const place = columnNumber(name);
      const ranges = this.rowGroups.map(({ columns }) => columns[place]!.filter);
      return named(this.path, () => readFilters(this.#file, ranges));
    });
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
    return named(this.path, () => readRange(this.#file, start, end));
  }

  /** Its key filter. @throws {SegmentError} */
  readKeyFilter(): Promise<Buffer> {
    return this.#readKeyPages(0, this.metadata.key_filter.bytes);
  }

  /** Whether it may hold a key, by one page of its key filter. @throws {SegmentError} */
  async mayHoldKey(hash: Hash64): Promise<boolean> {
    const { page, block } = keyPlace(this.metadata.key_filter.bytes, hash);
    return blockMayContain(await this.#readKeyPages(page, page + KEY_PAGE_BYTES), block, hash);
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
    const block = await this.readBytes(start, start + bytes);
    try {
      return decode(block);
    } catch (error) {
      throw nameError(where, error);
    }
  }

  /** Pages [start, end) of its key filter. */
  async #readKeyPages(start: number, end: number): Promise<Buffer> {
    const { offset } = this.metadata.key_filter;
    const pages = await this.readBytes(offset + start, offset + end);
    try {
      checkKeyPages(pages);
    } catch (error) {
      throw nameError(`${this.path}: the key filter from byte ${offset + start}`, error);
    }
    return pages;
  }

  #decoding<Result>(decode: () => Result): Result {
    try {
      return decode();
    } catch (error) {
      throw nameError(this.path, error);
    }
  }
}

/** Prefixes a SegmentError of `read` with the path. */
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
