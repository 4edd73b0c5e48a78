/**
 * Reads a segment, also as a file of a snapshot. Opening reads the footer but no rows. A row group
 * is decoded as a unit into the lines that were sealed, if it may have lines that a reader wants.
 */
import { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { IndexError } from "../index/index_format.ts";
import { IndexReader, type TableName } from "../index/index_reader.ts";
import { batchHash, filterHashes, type KeyHash } from "../index/key_hash.ts";
import { LF } from "../line/line_bytes.ts";
import { type EventFilter, firstLineAfter } from "../line/stored_line.ts";
import type { LinesWanted, SealedFile } from "../read/snapshot.ts";
import type { StreamSource } from "../read/stream_counts.ts";
import { hashFile, readRange, type Storage, type StorageFile } from "../storage/storage.ts";
import { SegmentError } from "../storage/errors.ts";
import { type ColumnValues, hexAt, isValueAt, uuidAt } from "./column_values.ts";
import { assembleLines, type LineColumns } from "./line_assembler.ts";
import { decodeColumns } from "./row_group_decoder.ts";
import { type ListedFile, SegmentCaches } from "./segment_caches.ts";
import { readFooter, type RowGroup, type SegmentFooter } from "./segment_footer.ts";
import { checkFacts, type EventFacts, type ExpectedSegment } from "./segment_metadata.ts";
import { type ColumnName, columnNumber } from "./segment_schema.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";

/** A segment's file, opened by the caller. */
type SegmentFile = Pick<StorageFile, "read" | "close">;

/** Reads a segment's file on demand. Methods may be called concurrently. */
export class Segment implements SealedFile {
  readonly path: string;
  readonly lastEventId: string;
  readonly index: IndexReader;
  readonly #listed: Required<ListedFile> & Partial<EventFacts>;
  readonly #file: SegmentFile;
  readonly #caches: SegmentCaches;
  readonly #report: (line: string) => void;
  readonly #mayMatch: (filter: EventFilter) => Promise<boolean> | boolean;
  #hasReported = false;

  /**
   * @param listed expected file size and footer metadata.
   * @param caches caches shared by the segments in a log.
   * @param report called once if the index is damaged.
   * @param mayMatch whether the segment may have lines that pass a filter.
   */
  constructor(
    listed: Required<ListedFile> & Partial<EventFacts>,
    file: SegmentFile,
    caches: SegmentCaches = new SegmentCaches(),
    report: (line: string) => void = () => {},
    mayMatch: (filter: EventFilter) => Promise<boolean> | boolean = () => true,
  ) {
    this.path = listed.path;
    this.lastEventId = listed.last_event_id ?? "";
    this.#listed = listed;
    this.#file = file;
    this.#caches = caches;
    this.#report = report;
    this.#mayMatch = mayMatch;
    const place = async () => ({ file, ...(await this.footer()).index });
    this.index = new IndexReader(this.path, place, caches.indexes);
  }

  get streams(): StreamSource {
    return this.index;
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

  /** See `LogFile`. Copies chunks from the cache, so that the caller may overwrite them. */
  async *lines(wanted: LinesWanted): AsyncGenerator<Buffer, void> {
    if (!await this.#mayMatch(wanted.filter)) return;
    const { after, filter: { recordKey }, memory } = wanted;
    const numbers = await this.prune(wanted);
    for (const [place, number] of numbers.entries()) {
      if (recordKey !== undefined) {
        const lines = await this.readLines(number, recordKey);
        if (lines.length > READ_CHUNK_BYTES) await wanted.reserve?.(lines.length);
        const start = after === undefined ? 0 : firstLineAfter(lines, after);
        if (start < lines.length) yield lines.subarray(start);
        continue;
      }
      let end = 0;
      let sizeBytes = Infinity;
      let reservedBytes = READ_CHUNK_BYTES;
      while (end < sizeBytes) {
        const taken = await this.useRowGroup(number, (lines) => {
          const start = end === 0 && after !== undefined ? firstLineAfter(lines, after) : end;
          const next = numbers[place + 1];
          const isFirst = end === 0;
          const chunkBytes = chunkEnd(lines, start) - start;
          if (chunkBytes > reservedBytes) return chunkBytes;
          end = start + chunkBytes;
          sizeBytes = lines.length;
          // While this one is sent, decode the next row group, for this page or the one after.
          if (isFirst && next !== undefined && 2 * wanted.wantedBytes() > sizeBytes - start) {
            this.prefetchRowGroup(next);
          }
          const chunk = memory.take(end - start);
          chunk.set(lines.subarray(start, end));
          return chunk;
        });
        const isTaken = typeof taken !== "number";
        reservedBytes = isTaken ? READ_CHUNK_BYTES : taken;
        if (isTaken) yield taken;
        else await wanted.reserve?.(taken);
      }
    }
  }

  /** Returns the row groups that may have wanted lines, in log order. @throws {SegmentError} */
  async prune({ after, filter }: Pick<LinesWanted, "after" | "filter">): Promise<number[]> {
    let numbers = null as readonly number[] | null;
    for (const hash of filterHashes(filter)) {
      const found = await this.rowGroupsWith("locations", hash);
      numbers = numbers?.filter((number) => found.includes(number)) ?? found;
      if (numbers.length === 0) return [];
    }
    const rowGroups = await this.rowGroups();
    return (numbers ?? [...rowGroups.keys()]).filter((number) =>
      after === undefined || rowGroups[number]!.lastEventId > after
    );
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

  /** Returns the lines in a row group, or those with a `record_key`. @throws {SegmentError} */
  readLines(number: number, recordKey?: string): Promise<Buffer> {
    return this.#caches.lines.decodeInTurn(() => this.#decode(number, recordKey));
  }

  assemble(columns: LineColumns): Promise<Buffer> {
    return this.#named(() => assembleLines(columns));
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
    const places = names.map((name) => rowGroup.columns[columnNumber(name)]!);
    return await this.#named(async () => {
      const chunks: ArrayBuffer[] = [];
      // Neighbouring chunks are read together, since each read takes as long as decoding one.
      for (let first = 0, next = 1; first < places.length; first = next++) {
        while (places[next]?.start === places[next - 1]!.end) next += 1;
        const offset = places[first]!.start;
        const { buffer } = await readRange(this.#file, offset, places[next - 1]!.end);
        for (const { start, end } of places.slice(first, next)) {
          chunks.push((buffer as ArrayBuffer).slice(start - offset, end - offset));
        }
      }
      return await decodeColumns(rowGroup, names, (name) => chunks[names.indexOf(name)]!);
    });
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

  /** Prefixes a SegmentError from `read` with the path. */
  async #named<Result>(read: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      throw nameError(this.path, error);
    }
  }
}

/** Returns the end of the chunk of one or more complete lines that starts at `start`. */
function chunkEnd(lines: Buffer, start: number): number {
  if (lines.length - start <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, start + READ_CHUNK_BYTES - 1) + 1;
  return end > start ? end : lines.indexOf(LF, start) + 1;
}

function nameError(where: string, error: unknown): unknown {
  if (!(error instanceof SegmentError)) return error;
  return new SegmentError(`${where}: ${error.message}`, { cause: error, code: error.code });
}

/**
 * Opens the segment at `path` and reads its footer.
 * @throws {SegmentError} if the file is not a segment or not the expected one.
 */
export async function openSegment(
  storage: Storage,
  path: string,
  expected: Partial<EventFacts> = {},
): Promise<Segment> {
  const file = await storage.open(path, "read");
  try {
    const listed = { ...expected, path, bytes: await file.size() };
    const segment = new Segment(listed, file);
    await segment.footer();
    return segment;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * Opens a segment and checks its bytes and footer. The caller closes it.
 * @throws {SegmentError}
 */
export async function openChecked(storage: Storage, expected: ExpectedSegment): Promise<Segment> {
  const { path, bytes, sha256 } = expected;
  const file = await storage.open(path, "read");
  try {
    const sizeBytes = await file.size();
    requireSame(path, "file size in bytes", bytes, sizeBytes);
    requireSame(path, "SHA-256 of the file", sha256, await hashFile(file, sizeBytes));
  } finally {
    await file.close();
  }
  return await openSegment(storage, path, expected);
}

function requireSame<Value>(path: string, what: string, expected: Value, found: Value): void {
  if (expected === found) return;
  const message = `${path}: ${what}: expected ${expected}, found ${found}`;
  throw new SegmentError(message, { code: "file_hash_mismatch" });
}

/**
 * Returns the entry for a committed batch; null if the segment does not contain it. Decodes four
 * columns in the row group where the batch starts, and in those where it continues.
 * @throws {SegmentError}
 */
export async function findBatch(
  segment: Segment,
  source: string,
  batchId: string,
): Promise<BatchEntry | null> {
  let entry = null as BatchEntry | null;
  const rowGroups = await segment.rowGroups();
  for (let start of await segment.rowGroupsWith("identities", batchHash(source, batchId))) {
    for (; start < rowGroups.length; start++) {
      const columns = await segment.readColumns(start, ENTRY_COLUMNS);
      const rows = rowsOfBatch(columns, source, batchId);
      const [first] = rows;
      if (first === undefined) break;
      const last = rows.at(-1)!;
      entry = {
        batch_digest: hexAt(columns.batch_digest, first),
        batch_id: batchId,
        events: (entry?.events ?? 0) + rows.length,
        first_event_id: entry?.first_event_id ?? uuidAt(columns.event_id, first),
        last_event_id: uuidAt(columns.event_id, last),
        source,
      };
      // A batch continues in the next row group only if it reaches the end of this one.
      if (last + 1 < rowGroups[start]!.rows) break;
    }
    if (entry !== null) break;
  }
  return entry;
}

const ENTRY_COLUMNS = ["event_id", "source", "batch_id", "batch_digest"] as const;

function rowsOfBatch(
  columns: Record<"source" | "batch_id", ColumnValues>,
  source: string,
  batchId: string,
): number[] {
  const sourceBytes = Buffer.from(source);
  const idBytes = Buffer.from(batchId);
  return [...columns.batch_id.starts.keys()].filter((row) =>
    isValueAt(columns.batch_id, row, idBytes) && isValueAt(columns.source, row, sourceBytes)
  );
}
