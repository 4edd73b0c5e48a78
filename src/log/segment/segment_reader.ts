/**
 * Reads a segment. Opening reads the footer but no rows. A row group is decoded as a unit into the
 * lines that were sealed; `row_group_pruning.ts` selects the row groups that a filter needs.
 */
import type { Buffer } from "node:buffer";
import { blockMayContain, type Hash64 } from "../line/bloom_block.ts";
import type { StreamEntry } from "../read/stream_counts.ts";
import { type FileRange, readRange } from "../storage/read_range.ts";
import { SegmentError } from "../storage/segment_error.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";
import { CachedReads } from "../wal/cached_reads.ts";
import type { ColumnValues } from "./column_values.ts";
import { KEY_PAGE_BYTES, keyPlace, openDamagedPages } from "./key_filter.ts";
import { assembleLines, type AssembleOptions, type LineColumns } from "./line_assembler.ts";
import { decodeColumns } from "./row_group_decoder.ts";
import { type ListedFile, SegmentCaches } from "./segment_caches.ts";
import { readFooter, type RowGroup, type SegmentFooter } from "./segment_footer.ts";
import { checkFacts, type EventFacts } from "./segment_metadata.ts";
import { type ColumnName, columnNumber } from "./segment_schema.ts";
import {
  type BlockPlace,
  decodeStreamBlock,
  decodeStreamIndex,
  STREAM_BLOCK_BYTES_MAX,
  type StreamIndex,
} from "./stream_index.ts";

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
  async rowGroups(): Promise<readonly RowGroup[]> {
    return (await this.footer()).rowGroups;
  }

  /**
   * Calls `use` with the stored lines in a row group, each with its LF, in log order. The lines are
   * read-only and valid until `use` returns. @throws {SegmentError}
   */
  useRowGroup<Result>(number: number, use: (lines: Buffer) => Result): Promise<Result> {
    return this.#caches.lines.use(this.#linesKey(number), () => this.#decode(number), use);
  }

  /** Starts to decode a row group that will be used soon, unless others are being decoded. */
  prefetchRowGroup(number: number): void {
    this.#caches.lines.prefetch(this.#linesKey(number), () => this.#decode(number));
  }

  /** Returns the lines in a row group with this `record_key`. @throws {SegmentError} */
  readLinesOfKey(number: number, recordKey: string): Promise<Buffer> {
    return this.#caches.lines.decodeInTurn(() => this.#decode(number, recordKey));
  }

  assemble(columns: LineColumns, options: AssembleOptions): Promise<Buffer> {
    return this.#named(() => assembleLines(columns, options));
  }

  /**
   * Reads and decodes columns in a row group on this thread.
   * @param names in schema order.
   * @throws {SegmentError}
   */
  async readColumns<Name extends ColumnName>(
    number: number,
    names: readonly Name[],
  ): Promise<Record<Name, ColumnValues>> {
    const rowGroup = (await this.rowGroups())[number]!;
    return await this.#named(async () => {
      const chunks = new Map<Name, ArrayBuffer>();
      for (const name of names) {
        const { start, end } = rowGroup.columns[columnNumber(name)]!;
        chunks.set(name, (await readRange(this.#file, start, end)).buffer as ArrayBuffer);
      }
      return await decodeColumns(rowGroup, names, (name) => chunks.get(name)!);
    });
  }

  /** Returns the key filter of each row group. Damaged pages match all. @throws {SegmentError} */
  rowFilters(): Promise<readonly Buffer[]> {
    return this.#caches.rowFilters.load(this.path, async () => {
      const { metadata, indexes: { row_filters: { start, end } } } = await this.footer();
      const bytes = await this.readBytes(start, end);
      this.#reportDamage(openDamagedPages(bytes), start);
      let filterStart = 0;
      return metadata.row_filter_bytes.map((sizeBytes) => {
        filterStart += sizeBytes;
        return bytes.subarray(filterStart - sizeBytes, filterStart);
      });
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
    this.#reportDamage(openDamagedPages(pages), key_filter.start + start);
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

  #linesKey(number: number): string {
    return `${this.path} ${number}`;
  }

  async #decode(number: number, recordKey?: string): Promise<Buffer> {
    const rowGroup = (await this.rowGroups())[number]!;
    return await this.#named(async () => {
      const { start } = rowGroup.columns[0]!;
      const bytes = await readRange(this.#file, start, rowGroup.columns.at(-1)!.end);
      const request = { rowGroup, bytes: bytes.buffer as ArrayBuffer, recordKey };
      return await this.#caches.decoder.decode(request);
    });
  }

  /** @param damaged the damaged page's offset from `start`; null if there is none. */
  #reportDamage(damaged: number | null, start: number): void {
    if (damaged === null || this.#hasReported) return;
    this.#hasReported = true;
    const page = `the key filter page at byte ${start + damaged}`;
    this.#report(`${this.path}: ${page} does not match its CRC-32; lookups read the rows instead`);
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
