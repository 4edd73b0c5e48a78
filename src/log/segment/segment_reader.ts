/**
 * Reads a segment, also as a file of a snapshot. Opening reads the footer but no rows. A row group
 * is decoded as a unit into the lines that were sealed, if it may have lines that a reader wants.
 */
import { Buffer } from "node:buffer";
import { READ_CHUNK_BYTES } from "../../limits.ts";
import { IndexError } from "../index/index_format.ts";
import { IndexReader, type TableName } from "../index/index_reader.ts";
import { batchHash, filterHashes, type KeyHash } from "../index/key_hash.ts";
import { type ListedFile, TableCache, type TableFile } from "../index/table_cache.ts";
import { LF } from "../line/line_bytes.ts";
import { type EventFilter, firstLineAfter } from "../line/stored_line.ts";
import type { LinesWanted, SealedFile } from "../read/snapshot.ts";
import { type FileRange, hashFile, readRange, type Storage } from "../storage/storage.ts";
import { SegmentError } from "../storage/errors.ts";
import { type ColumnValues, hexAt, isValueAt, uuidAt } from "./column_values.ts";
import { assembleLines, type LineColumns } from "./line_assembler.ts";
import { decodeColumns } from "./row_group_decoder.ts";
import { RowGroupCache } from "./row_group_cache.ts";
import { readFooter, type RowGroup, type SegmentFooter } from "./segment_footer.ts";
import { checkFacts, type EventFacts, type ExpectedSegment } from "./segment_metadata.ts";
import { type ColumnName, columnNumber } from "./segment_schema.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";

/** Reads a segment's file on demand. Methods may be called concurrently. */
export class Segment implements SealedFile {
  readonly path: string;
  readonly lastEventId: string;
  readonly index: IndexReader;
  readonly #listed: Partial<EventFacts>;
  readonly #tables: TableCache;
  readonly #file: TableFile;
  readonly #cache: RowGroupCache;
  readonly #report: (line: string) => void;
  readonly #mayMatch: (filter: EventFilter) => Promise<boolean> | boolean;
  #hasReported = false;

  /**
   * @param listed expected file size and footer metadata.
   * @param report called once if the index is damaged.
   * @param mayMatch whether the segment may have lines that pass a filter.
   */
  constructor(
    listed: ListedFile & Partial<EventFacts>,
    tables: TableCache,
    cache: RowGroupCache = new RowGroupCache(),
    report: (line: string) => void = () => {},
    mayMatch: (filter: EventFilter) => Promise<boolean> | boolean = () => true,
  ) {
    this.path = listed.path;
    this.lastEventId = listed.last_event_id ?? "";
    this.#listed = listed;
    this.#tables = tables;
    this.#file = tables.file(listed);
    this.#cache = cache;
    this.#report = report;
    this.#mayMatch = mayMatch;
    // Kept when the file is closed: decoding a footer takes 3 ms, and a listing asks many segments.
    let range: FileRange | null = null;
    const locate = async () => range ??= (await this.footer()).index;
    this.index = new IndexReader(tables, this.path, this.#file, locate);
  }

  /** @throws {SegmentError} if the file is not a segment or not the expected one. */
  async footer(): Promise<SegmentFooter> {
    return await this.#file.parsed("footer", () =>
      this.#named(async () => {
        const footer = await readFooter(this.#file, await this.#file.size());
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
      let reservedBytes = READ_CHUNK_BYTES;
      for (let end = 0, sizeBytes = Infinity; end < sizeBytes;) {
        const lines = await this.cachedLines(number);
        const start = end === 0 && after !== undefined ? firstLineAfter(lines, after) : end;
        const chunkBytes = chunkEnd(lines, start) - start;
        if (chunkBytes > reservedBytes) {
          reservedBytes = chunkBytes;
          await wanted.reserve?.(chunkBytes);
          continue;
        }
        const next = numbers[place + 1];
        // While this one is sent, decode the next row group, for this page or the one after.
        if (
          end === 0 && next !== undefined && 2 * wanted.wantedBytes() > lines.length - start
        ) {
          this.#cache.prefetch(this.#linesKey(next), () => this.#decode(next));
        }
        reservedBytes = READ_CHUNK_BYTES;
        end = start + chunkBytes;
        sizeBytes = lines.length;
        const chunk = memory.take(chunkBytes);
        chunk.set(lines.subarray(start, end));
        yield chunk;
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
   * Returns the stored lines in a row group, each with its LF, in log order. They are read-only,
   * and valid in this turn of the event loop. @throws {SegmentError}
   */
  cachedLines(number: number): Promise<Buffer> {
    return this.#cache.load(this.#linesKey(number), () => this.#decode(number));
  }

  /** Returns the lines in a row group, or those with a `record_key`. @throws {SegmentError} */
  readLines(number: number, recordKey?: string): Promise<Buffer> {
    return this.#cache.decodeInTurn(() => this.#decode(number, recordKey));
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
    return await this.#named(async () => {
      const places = names.map((name) => rowGroup.columns[columnNumber(name)]!);
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
      const chunkOf = (name: Name) => chunks[names.indexOf(name)]!;
      return await decodeColumns(rowGroup, names, chunkOf);
    });
  }

  /**
   * Returns the row groups that the index has for a key, in order; all of them if the index is
   * damaged. @throws {SegmentError}
   */
  async rowGroupsWith(table: TableName, hash: KeyHash): Promise<readonly number[]> {
    let found: readonly number[] | null = null;
    try {
      found = await this.index.find(table, hash);
    } catch (error) {
      this.reportDamage(error);
    }
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

  /** Closes a segment that has a table cache of its own. */
  async close(): Promise<void> {
    await this.#tables.close();
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
      return await this.#cache.decoder.decode(request);
    });
  }

  /** Prefixes a SegmentError from `read` with the path. */
  async #named<Result>(read: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof SegmentError)) throw error;
      const { message, code } = error;
      throw new SegmentError(`${this.path}: ${message}`, { cause: error, code });
    }
  }
}

/** Returns the end of the chunk of one or more complete lines that starts at `start`. */
function chunkEnd(lines: Buffer, start: number): number {
  if (lines.length - start <= READ_CHUNK_BYTES) return lines.length;
  const end = lines.lastIndexOf(LF, start + READ_CHUNK_BYTES - 1) + 1;
  return end > start ? end : lines.indexOf(LF, start) + 1;
}

/** Opens a segment and checks its bytes. The caller closes it. @throws {SegmentError} */
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
  return new Segment(expected, new TableCache(storage));
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
