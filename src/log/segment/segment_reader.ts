/**
 * Reads a segment. Opening reads the footer but no rows. A row group is decoded as a unit into the
 * lines that were sealed; `row_group_pruning.ts` selects the row groups that a filter needs.
 */
import { Buffer } from "node:buffer";
import { blockMayContain, decodeBloomFilter } from "../parquet/bloom_filter.ts";
import { decodeColumn } from "../parquet/column_decoder.ts";
import { type ColumnValues, isValueAt } from "../parquet/column_values.ts";
import { type FileRange, readRange, readRanges } from "../parquet/read_range.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { type Hash64, xxhash64Loaded } from "../parquet/xxhash64.ts";
import type { StreamEntry } from "../read/stream_counts.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";
import { KEY_PAGE_BYTES, keyPlace, openDamagedPages } from "./key_filter.ts";
import { assembleLines, type AssembleOptions, type LineColumns } from "./line_assembler.ts";
import { type ColumnFilters, type ListedFile, SegmentCaches } from "./segment_caches.ts";
import { readFooter, readRowGroups, type RowGroup, type SegmentFooter } from "./segment_footer.ts";
import { checkFacts, type EventFacts } from "./segment_metadata.ts";
import {
  COLUMN_NAMES,
  columnFormat,
  type ColumnName,
  columnNumber,
  type FilteredColumn,
} from "./segment_schema.ts";
import {
  type BlockPlace,
  decodeStreamBlock,
  decodeStreamIndex,
  STREAM_BLOCK_BYTES_MAX,
  type StreamIndex,
} from "./stream_index.ts";
import { CachedReads } from "../wal/cached_reads.ts";

/** A segment's file, opened by the caller. */
type SegmentFile = Pick<StorageFile, "read" | "close">;

/** Reads a segment's file on demand. Methods may be called concurrently. */
export class Segment implements StreamIndex {
  readonly path: string;
  readonly #listed: ListedFile & Partial<EventFacts>;
  readonly #file: SegmentFile;
  readonly #caches: SegmentCaches;
  readonly #report: (line: string) => void;
  #hasReported = false;

  /**
   * @param listed expected file size and footer metadata.
   * @param caches caches shared by the segments in a log.
   * @param report called once if a page of the key filter is damaged.
   */
  constructor(
    listed: ListedFile & Partial<EventFacts>,
    file: SegmentFile,
    caches: SegmentCaches = new SegmentCaches(),
    report: (line: string) => void = () => {},
  ) {
    this.path = listed.path;
    this.#listed = listed;
    this.#file = file;
    this.#caches = caches;
    this.#report = report;
  }

  /** @throws {SegmentError} if the file is not a segment or not the expected one. */
  footer(): Promise<SegmentFooter> {
    return this.#caches.footers.load(this.path, () =>
      this.#named(async () => {
        const footer = await readFooter(this.#file, this.#listed.bytes);
        checkFacts(footer.metadata, this.#listed);
        return footer;
      }));
  }

  /** Returns the row groups, oldest first. @throws {SegmentError} */
  rowGroups(): Promise<readonly RowGroup[]> {
    return this.#caches.rowGroups.load(this.path, async () => {
      const footer = await this.footer();
      return await this.#named(() => readRowGroups(this.#file, this.#listed.bytes, footer));
    });
  }

  /**
   * Calls `use` with the stored lines in a row group, each with its LF, in log order. The lines are
   * read-only and valid until `use` returns. @throws {SegmentError}
   */
  useRowGroup<Result>(number: number, use: (lines: Buffer) => Result): Promise<Result> {
    const decode = (memory: Buffer | undefined) => this.readRowGroup(number, memory);
    return this.#caches.lines.use(`${this.path} ${number}`, decode, use);
  }

  /** Returns the stored lines in a row group. @param memory as for `assembleLines()`. */
  async readRowGroup(number: number, memory?: Buffer): Promise<Buffer> {
    return await this.assemble(await this.readColumns(number, COLUMN_NAMES), { memory });
  }

  /** Returns the lines in a row group with this `record_key`; null if there are none. */
  async readLinesOfKey(number: number, recordKey: string): Promise<Buffer | null> {
    const bytes = Buffer.from(recordKey);
    // Read only the keys first; they make up a tenth of the row group. In a large log, most Bloom
    // filter matches are false positives.
    const { record_key } = await this.readColumns(number, ["record_key"]);
    const rows = [...record_key.starts.keys()].filter((row) => isValueAt(record_key, row, bytes));
    if (rows.length === 0) return null;
    return await this.#caches.lines.decodeInTurn(async () =>
      await this.assemble(await this.readColumns(number, COLUMN_NAMES), { rows })
    );
  }

  assemble(columns: LineColumns, options: AssembleOptions): Promise<Buffer> {
    return this.#named(() => assembleLines(columns, options));
  }

  /**
   * Decodes columns in a row group.
   * @param names in schema order.
   * @throws {SegmentError}
   */
  async readColumns<Name extends ColumnName>(
    number: number,
    names: readonly Name[],
  ): Promise<Record<Name, ColumnValues>> {
    const rowGroups = await this.rowGroups();
    return await this.#named(async () => {
      const { rows, columns } = rowGroups[number]!;
      const places = names.map((name) => columns[columnNumber(name)]!);
      const chunks = await readRanges(this.#file, places);
      const decoded = names.map((name, i) => {
        const { start, end, uncompressedBytes } = places[i]!;
        const pages = { bytes: chunks[i]!, offset: start, rows, uncompressedBytes };
        const decode = () => decodeColumn(columnFormat(name), pages);
        return [name, within(`${name} in bytes [${start}, ${end})`, decode)];
      });
      return Object.fromEntries(decoded) as Record<Name, ColumnValues>;
    });
  }

  /** Returns the Bloom filters for a column, one per row group. @throws {SegmentError} */
  filters(name: FilteredColumn): Promise<ColumnFilters> {
    return this.#caches.filters.load(`${this.path} ${name}`, async () => {
      const rowGroups = await this.rowGroups();
      const ranges = rowGroups.map(({ filters }) => filters[name]);
      return await this.#named(async () =>
        (await readRanges(this.#file, ranges)).map((bytes, number) => {
          const { start, end } = ranges[number]!;
          return within(`${name} in bytes [${start}, ${end})`, () => decodeBloomFilter(bytes));
        })
      );
    });
  }

  /** @throws {SegmentError} */
  readStreamIndex(): Promise<readonly BlockPlace[]> {
    return this.#caches.streamIndexes.load(this.path, async () => {
      const { indexes } = await this.footer();
      return await this.#readStreams(indexes.stream_index, decodeStreamIndex);
    });
  }

  /** @throws {SegmentError} */
  readStreamBlock(start: number, end: number): Promise<readonly StreamEntry[]> {
    return this.#caches.streamBlocks.load(`${this.path} ${start}`, async () => {
      const { stream_blocks: blocks } = (await this.footer()).indexes;
      const range = { start: blocks.start + start, end: blocks.start + end };
      const isPossible = start < end && end - start <= STREAM_BLOCK_BYTES_MAX &&
        range.end <= blocks.end;
      if (isPossible) return await this.#readStreams(range, decodeStreamBlock);
      throw new SegmentError(`${this.path}: invalid stream index block [${start}, ${end})`);
    });
  }

  /** Reads bytes [start, end) of the file. @throws {SegmentError} */
  readBytes(start: number, end: number): Promise<Buffer> {
    return this.#named(() => readRange(this.#file, start, end));
  }

  /** Reads bytes [start, end) of the key filter. Damaged pages match all. @throws {SegmentError} */
  async readKeyPages(start: number, end: number): Promise<Buffer> {
    const { key_filter } = (await this.footer()).indexes;
    const pages = await this.readBytes(key_filter.start + start, key_filter.start + end);
    const damaged = openDamagedPages(pages);
    if (damaged !== null && !this.#hasReported) {
      this.#hasReported = true;
      const page = `the key filter page at byte ${key_filter.start + start + damaged}`;
      this.#report(
        `${this.path}: ${page} does not match its CRC-32; lookups read the rows instead`,
      );
    }
    return pages;
  }

  /** Whether the segment may contain a key. Reads one key filter page. @throws {SegmentError} */
  async mayHoldKey(hash: Hash64): Promise<boolean> {
    const { metadata } = await this.footer();
    const { page, block } = keyPlace(metadata.key_filter_bytes, hash);
    return blockMayContain(await this.readKeyPages(page, page + KEY_PAGE_BYTES), block, hash);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #readStreams<Block>(
    { start, end }: FileRange,
    decode: (block: Buffer) => Block,
  ): Promise<Block> {
    const bytes = await this.readBytes(start, end);
    const where = `a block of the stream index, ${bytes.length} bytes at byte ${start}`;
    return within(`${this.path}: ${where}`, () => decode(bytes));
  }

  /** Prefixes a SegmentError from `read` with the path. */
  async #named<Result>(read: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      throw nameError(this.path, error);
    }
  }
}

/** Prefixes a SegmentError thrown by `decode` with `where`. */
function within<Result>(where: string, decode: () => Result): Result {
  try {
    return decode();
  } catch (error) {
    throw nameError(where, error);
  }
}

function nameError(where: string, error: unknown): unknown {
  if (!(error instanceof SegmentError)) return error;
  return new SegmentError(`${where}: ${error.message}`, { cause: error, fault: error.fault });
}

/**
 * Opens the segment at `path`, whose bytes are probably cached, and reads its footer.
 * @throws {SegmentError} if the file is not a segment or not the expected one.
 */
export async function openSegment(
  storage: Storage,
  path: string,
  expected: Partial<EventFacts> = {},
): Promise<Segment> {
  await xxhash64Loaded;
  const file = await storage.open(path, "read");
  const reads = new CachedReads();
  const read: SegmentFile["read"] = (into, position) => reads.read(file, into, position);
  try {
    const listed = { ...expected, path, bytes: await file.size() };
    const segment = new Segment(listed, { read, close: () => file.close() });
    await segment.footer();
    return segment;
  } catch (error) {
    await file.close();
    throw error;
  }
}
