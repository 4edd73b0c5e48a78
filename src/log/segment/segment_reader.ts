/**
 * Reads a segment. Opening reads the footer but no rows. A row group is decoded as a unit into the
 * lines that were sealed; `row_group_pruning.ts` selects the row groups that a filter needs.
 */
import { Buffer } from "node:buffer";
import { type BloomFilter, decodeBloomFilter } from "../parquet/bloom_filter.ts";
import { decodeColumn } from "../parquet/column_decoder.ts";
import { type ColumnValues, isValueAt } from "../parquet/column_values.ts";
import { readRange, readRanges } from "../parquet/read_range.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { xxhash64Loaded } from "../parquet/xxhash64.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";
import { IndexError } from "../index/index_error.ts";
import { IndexReader, type TableName } from "../index/index_reader.ts";
import type { KeyHash } from "../index/key_hash.ts";
import { assembleLines, type AssembleOptions, type LineColumns } from "./line_assembler.ts";
import { type ListedFile, SegmentCaches } from "./segment_caches.ts";
import { readFooter, readRowGroups, type RowGroup, type SegmentFooter } from "./segment_footer.ts";
import { checkFacts, type EventFacts } from "./segment_metadata.ts";
import {
  COLUMN_NAMES,
  columnFormat,
  type ColumnName,
  columnNumber,
  type FilteredColumn,
} from "./segment_schema.ts";
import { CachedReads } from "../wal/cached_reads.ts";

/** A segment's file, opened by the caller. */
type SegmentFile = Pick<StorageFile, "read" | "close">;

/** Reads a segment's file on demand. Methods may be called concurrently. */
export class Segment {
  readonly path: string;
  readonly index: IndexReader;
  readonly #listed: Required<ListedFile> & Partial<EventFacts>;
  readonly #file: SegmentFile;
  readonly #caches: SegmentCaches;
  readonly #report: (line: string) => void;
  #hasReported = false;

  /**
   * @param listed expected file size and footer metadata.
   * @param caches caches shared by the segments in a log.
   * @param report called once if the index is damaged.
   */
  constructor(
    listed: Required<ListedFile> & Partial<EventFacts>,
    file: SegmentFile,
    caches: SegmentCaches = new SegmentCaches(),
    report: (line: string) => void = () => {},
  ) {
    this.path = listed.path;
    this.#listed = listed;
    this.#file = file;
    this.#caches = caches;
    this.#report = report;
    const place = async () => ({ file, ...(await this.footer()).index });
    this.index = new IndexReader(this.path, place, caches.indexes);
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
  async filters(name: FilteredColumn): Promise<BloomFilter[]> {
    const rowGroups = await this.rowGroups();
    const ranges = rowGroups.map(({ filters }) => filters[name]);
    return await this.#named(async () =>
      (await readRanges(this.#file, ranges)).map((bytes, number) => {
        const { start, end } = ranges[number]!;
        return within(`${name} in bytes [${start}, ${end})`, () => decodeBloomFilter(bytes));
      })
    );
  }

  /**
   * Returns the row groups that the index has for a key, in order; all of them if the index is
   * damaged. @throws {SegmentError}
   */
  async rowGroupsWith(table: TableName, hash: KeyHash): Promise<readonly number[]> {
    const found = await this.index.find(table, hash).catch((error) => {
      this.reportDamage(error);
      return null;
    });
    if (found?.length === 0) return found;
    const { length } = await this.rowGroups();
    // A crafted index could name others.
    if (found?.every((number) => number < length)) return found;
    return Array.from({ length }, (_, number) => number);
  }

  /** Reports the first damage of the index. @throws the error if it is another one. */
  reportDamage(error: unknown): void {
    if (!(error instanceof IndexError)) throw error;
    if (!this.#hasReported) this.#report(`${error.message}; lookups read the rows instead`);
    this.#hasReported = true;
  }

  /** Reads bytes [start, end) of the file. @throws {SegmentError} */
  readBytes(start: number, end: number): Promise<Buffer> {
    return this.#named(() => readRange(this.#file, start, end));
  }

  async close(): Promise<void> {
    await this.#file.close();
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
