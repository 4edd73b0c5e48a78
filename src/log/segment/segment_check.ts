/**
 * Checks a single segment, row group by row group: its bytes, footer and lines, and the structures
 * whose damage would hide events (column statistics, Bloom filters, index). Used by
 * `verify` and by the read-back after sealing.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { nameFault } from "../../event/names.ts";
import { HASH_BYTES } from "../line/line_bytes.ts";
import { mayContain } from "../parquet/bloom_filter.ts";
import {
  type ColumnValues,
  constantValues,
  distinctValues,
  textAt,
  uuidAt,
} from "../parquet/column_values.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { xxhash64 } from "../parquet/xxhash64.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";
import { CachedReads } from "../wal/cached_reads.ts";
import { type BatchRun, batchRuns } from "./segment_batches.ts";
import { BOUNDED_COLUMNS, type RowGroup } from "./segment_footer.ts";
import { IndexBuilder } from "../index/index_builder.ts";
import type { ExpectedSegment } from "./segment_metadata.ts";
import { openSegment, type Segment } from "./segment_reader.ts";
import { COLUMN_NAMES, type ColumnName, type FilteredColumn } from "./segment_schema.ts";
import { countRows } from "./segment_streams.ts";

const CHUNK_BYTES = 256 * 1024;

/**
 * Opens a segment and checks its bytes and footer. The caller closes it.
 * @throws {SegmentError}
 */
export async function openChecked(
  storage: Storage,
  expected: ExpectedSegment,
): Promise<Segment> {
  const { path, bytes, sha256 } = expected;
  const file = await storage.open(path, "read");
  try {
    const sizeBytes = await file.size();
    requireSame(path, "file size in bytes", bytes, sizeBytes);
    const found = await hashFile(file, sizeBytes);
    requireSame(path, "SHA-256 of the file", sha256, found);
  } finally {
    await file.close();
  }
  return await openSegment(storage, path, expected);
}

async function hashFile(file: StorageFile, sizeBytes: number): Promise<string> {
  const hash = createHash("sha256");
  const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, sizeBytes));
  const reads = new CachedReads();
  for (let offset = 0; offset < sizeBytes;) {
    const readBytes = await reads.read(file, chunk, offset);
    if (readBytes === 0) break;
    hash.update(chunk.subarray(0, readBytes));
    offset += readBytes;
  }
  return hash.digest("hex");
}

function requireSame<Value>(path: string, what: string, expected: Value, found: Value): void {
  if (expected === found) return;
  const message = `${path}: ${what}: expected ${expected}, found ${found}`;
  throw new SegmentError(message, { fault: "file_hash_mismatch" });
}

export interface BatchRows extends BatchRun {
  /** False if the batch continues from the previous row group. */
  isStart: boolean;
}

export interface CheckedRowGroup {
  /** The stored lines, each with its LF. */
  lines: Buffer;
  /** The rows, grouped by batch. */
  batches: BatchRows[];
}

/** Excludes the columns that only `verify --chain` checks; these make up most of a segment. */
const BRIEF_COLUMNS = COLUMN_NAMES.filter((name) => name !== "payload" && name !== "event_hash");
const NULL = Buffer.from("null");
const ZERO_HASH = Buffer.alloc(HASH_BYTES);

/** Checks and yields all rows in a segment. */
export class SegmentRowsCheck {
  readonly #segment: Segment;
  readonly #isFull: boolean;
  /** The expected stream index and key filter. */
  readonly #index = new IndexBuilder();
  #lastRun: BatchRun | null = null;
  #batches = 0;
  /** Reusable buffer with the previous lines. */
  #memory: Buffer = Buffer.alloc(0);

  /**
   * @param full whether to look up every `record_key`, and to read payloads and event hashes
   *   instead of using placeholders. This doubles the time.
   */
  constructor(segment: Segment, { full }: { full: boolean }) {
    this.#segment = segment;
    this.#isFull = full;
  }

  /**
   * Yields the row groups in log order. A row group's indexes are checked after the caller has
   * checked its rows, since errors in rows are more specific.
   * @throws {SegmentError}
   */
  async *rowGroups(): AsyncGenerator<CheckedRowGroup, void> {
    const rowGroups = await this.#segment.rowGroups();
    for (const [number, rowGroup] of rowGroups.entries()) {
      const columns = await this.#readColumns(number, rowGroup.rows);
      const batches = batchRuns(columns, rowGroup.rows).map((run) => this.#enter(run));
      const lines = await this.#segment.assemble(columns, { memory: this.#memory });
      this.#memory = Buffer.from(lines.buffer);
      yield { lines, batches };
      await this.#checkIndexes(number, rowGroup, columns);
    }
  }

  /** Checks the segment's indexes and batch count. Called after the last row group. */
  async finish(): Promise<void> {
    const segment = this.#segment;
    const { metadata, index: { start, end } } = await segment.footer();
    const expected = await this.#index.finish();
    const bytes = await segment.readBytes(start, end);
    if (!bytes.equals(expected)) {
      throw new SegmentError("the index of the file does not match its rows");
    }
    if (this.#batches === metadata.batches) return;
    throw new SegmentError(
      `${segment.path}: has ${this.#batches} batches, but the footer says ${metadata.batches}`,
    );
  }

  async #readColumns(number: number, rows: number): Promise<Record<ColumnName, ColumnValues>> {
    const segment = this.#segment;
    if (this.#isFull) return await segment.readColumns(number, COLUMN_NAMES);
    const columns = await segment.readColumns(number, BRIEF_COLUMNS);
    const payload = constantValues(NULL, rows);
    return { ...columns, payload, event_hash: constantValues(ZERO_HASH, rows) };
  }

  #enter(run: BatchRun): BatchRows {
    const { source, batch_id, batch_digest } = run;
    const last = this.#lastRun;
    const isStart = last === null || last.batch_id !== batch_id || last.source !== source;
    if (!isStart && last.batch_digest !== batch_digest) {
      throw new SegmentError(`${this.#segment.path}: batch ${batch_id} has two digests`);
    }
    this.#lastRun = run;
    if (isStart) {
      this.#batches += 1;
      this.#index.addBatch(source, batch_id);
    }
    return { ...run, isStart };
  }

  /** Checks that no index hides a row in a row group, and adds the rows to the stream index. */
  async #checkIndexes(
    number: number,
    rowGroup: RowGroup,
    columns: Record<ColumnName, ColumnValues>,
  ): Promise<void> {
    checkIds(`${this.#segment.path}: row group ${number}`, rowGroup, columns.event_id);
    for (const name of BOUNDED_COLUMNS) checkStatistics(rowGroup, name, columns[name]);
    if (this.#isFull) await this.#checkFilter("record_key", number, columns.record_key);
    countRows(columns, rowGroup.rows, (source, stream, events, lastRow) => {
      this.#index.addEvents(source, stream, events, uuidAt(columns.event_id, lastRow));
    });
    for (let row = 0; row < rowGroup.rows; row++) {
      this.#index.addRecordKey(textAt(columns.record_key, row));
    }
    this.#index.endRowGroup();
  }

  async #checkFilter(
    name: FilteredColumn,
    number: number,
    values: ColumnValues,
  ): Promise<void> {
    const filter = (await this.#segment.filters(name))[number]!;
    for (const value of distinctValues(values)) {
      if (mayContain(filter, xxhash64(value))) continue;
      throw new SegmentError(`${name}: the Bloom filter of row group ${number} lacks a value`);
    }
  }
}

/** Checks that the id statistics, which locate row groups, are the first and the last id. */
function checkIds(what: string, { rows, firstEventId, lastEventId }: RowGroup, ids: ColumnValues) {
  const [first, last] = [uuidAt(ids, 0), uuidAt(ids, rows - 1)];
  if (first === firstEventId && last === lastEventId) return;
  throw new SegmentError(
    `${what} holds events ${first} to ${last}, but the footer says ${firstEventId} to ` +
      lastEventId,
  );
}

/** Checks that all values are within their column's statistics and that names are valid. */
function checkStatistics(
  { bounds }: RowGroup,
  name: typeof BOUNDED_COLUMNS[number],
  values: ColumnValues,
): void {
  const { min, max } = bounds[name];
  for (const value of distinctValues(values)) {
    if (Buffer.compare(value, min) < 0 || Buffer.compare(value, max) > 0) {
      throw new SegmentError(`${name}: a value is outside the min/max statistics of its row group`);
    }
    const fault = name === "kind" ? null : nameFault(Buffer.from(value).toString("latin1"));
    if (fault !== null) throw new SegmentError(`${name}: a name ${fault}`);
  }
}
