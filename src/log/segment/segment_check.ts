/**
 * Checks a single segment, row group by row group: its bytes, footer and lines, and the structures
 * whose damage would hide events (ids of row groups, index). Used by `verify`
 * and by the read-back after sealing.
 */
import { Buffer, isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { nameFault } from "../../event/names.ts";
import { HASH_BYTES } from "../line/line_bytes.ts";
import { SegmentError } from "../storage/errors.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";
import {
  bytesAt,
  type ColumnValues,
  constantValues,
  distinctValues,
  hexAt,
  repeatsAt,
  textAt,
  uuidAt,
} from "./column_values.ts";
import type { RowGroup } from "./segment_footer.ts";
import { IndexBuilder } from "../index/index_writer.ts";
import type { ExpectedSegment } from "./segment_metadata.ts";
import { openSegment, type Segment } from "./segment_reader.ts";
import { COLUMN_NAMES, type ColumnName } from "./segment_schema.ts";

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
  for (let offset = 0; offset < sizeBytes;) {
    const readBytes = await file.read(chunk, offset);
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

/** Rows from one batch in one row group. */
interface BatchRun {
  source: string;
  batch_id: string;
  /** 64 lowercase hex digits. */
  batch_digest: string;
  rows: number;
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
  /** The index that the rows should have. */
  readonly #index = new IndexBuilder();
  #lastRun: BatchRun | null = null;
  #batches = 0;

  /**
   * @param full whether to read payloads and event hashes instead of using placeholders.
   */
  constructor(segment: Segment, { full }: { full: boolean }) {
    this.#segment = segment;
    this.#isFull = full;
  }

  /**
   * Yields the row groups in log order. The ids and names in a row group are checked after the
   * caller has checked its rows, since errors in rows are more specific.
   * @throws {SegmentError}
   */
  async *rowGroups(): AsyncGenerator<CheckedRowGroup, void> {
    const rowGroups = await this.#segment.rowGroups();
    for (const [number, rowGroup] of rowGroups.entries()) {
      const columns = await this.#readColumns(number, rowGroup.rows);
      const batches = batchRuns(columns, rowGroup.rows).map((run) => this.#enter(run));
      const lines = await this.#segment.assemble(columns);
      yield { lines, batches };
      this.#checkRows(number, rowGroup, columns);
    }
  }

  /** Checks the segment's index and batch count. Called after the last row group. */
  async finish(): Promise<void> {
    const segment = this.#segment;
    const { metadata, index: { start, end } } = await segment.footer();
    const expected = await this.#index.finish();
    if (!(await segment.readBytes(start, end)).equals(expected)) {
      throw new SegmentError("the index of the file does not match its rows");
    }
    await this.#checkEnds();
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

  /** Checks the first and last event in the footer against the row groups, which were checked. */
  async #checkEnds(): Promise<void> {
    const { metadata: { first_event_id, last_event_id }, rowGroups } = await this.#segment.footer();
    const first = rowGroups[0]!.firstEventId;
    const last = rowGroups.at(-1)!.lastEventId;
    if (first === first_event_id && last === last_event_id) return;
    throw new SegmentError(
      `${this.#segment.path}: holds events ${first} to ${last}, but the footer says ` +
        `${first_event_id} to ${last_event_id}`,
    );
  }

  /** Checks a row group's statistics and names, and adds its rows to the expected index. */
  #checkRows(number: number, rowGroup: RowGroup, columns: Record<ColumnName, ColumnValues>): void {
    checkIds(`${this.#segment.path}: row group ${number}`, rowGroup, columns.event_id);
    checkNames("source", columns.source);
    checkNames("stream", columns.stream);
    countRows(columns, rowGroup.rows, (source, stream, events, lastRow) => {
      this.#index.addEvents(source, stream, events, uuidAt(columns.event_id, lastRow));
    });
    for (const name of ["record_key", "kind"] as const) {
      for (const text of textsIn(columns[name])) this.#index.addValue(name, text);
    }
    this.#index.endRowGroup();
  }
}

function* textsIn(values: ColumnValues): Iterable<string> {
  for (const { buffer, byteOffset, length } of distinctValues(values)) {
    yield Buffer.from(buffer as ArrayBuffer, byteOffset, length).toString();
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

function checkNames(column: "source" | "stream", values: ColumnValues): void {
  for (const value of distinctValues(values)) {
    const fault = nameFault(Buffer.from(value).toString("latin1"));
    if (fault !== null) throw new SegmentError(`${column}: a name ${fault}`);
  }
}

type BatchColumns = Record<"source" | "batch_id" | "batch_digest", ColumnValues>;

/**
 * Returns the batches in a row group, in order.
 * @throws {SegmentError} if a batch has two digests, or a source or id that is not valid UTF-8.
 */
function batchRuns(columns: BatchColumns, rows: number): BatchRun[] {
  const runs: BatchRun[] = [];
  for (let start = 0; start < rows;) {
    const end = runEnd(columns, start, rows);
    runs.push({
      source: wholeTextAt(columns.source, start),
      batch_id: wholeTextAt(columns.batch_id, start),
      batch_digest: hexAt(columns.batch_digest, start),
      rows: end - start,
    });
    start = end;
  }
  return runs;
}

/** Rejects invalid UTF-8; otherwise different bytes could decode to the same string. */
function wholeTextAt(column: ColumnValues, row: number): string {
  const text = textAt(column, row);
  if (text.includes("\ufffd") && !isUtf8(bytesAt(column, row))) {
    throw new SegmentError(`row ${row} has a source or batch id that is not valid UTF-8`);
  }
  return text;
}

function runEnd({ source, batch_id, batch_digest }: BatchColumns, start: number, rows: number) {
  let end = start + 1;
  while (end < rows && repeatsAt(batch_id, end) && repeatsAt(source, end)) {
    if (!repeatsAt(batch_digest, end)) {
      throw new SegmentError(`batch ${textAt(batch_id, start)} has two digests`);
    }
    end += 1;
  }
  return end;
}

/** Receives the event count for a stream in a row group, and the row of its last event. */
type AddEvents = (source: string, stream: string, events: number, lastRow: number) => void;

/**
 * Counts the first `rows` rows in a row group. If names are not dictionary-encoded, `add` may be
 * called several times for a stream, with the latest events first.
 */
function countRows(
  { source, stream }: Record<"source" | "stream", ColumnValues>,
  rows: number,
  add: AddEvents,
): void {
  // Keyed by the names' offsets; rows with the same dictionary value share an offset.
  const counted = new Map<string, { events: number; lastRow: number }>();
  for (let row = rows - 1; row >= 0; row--) {
    const names = `${source.starts[row]} ${stream.starts[row]}`;
    const known = counted.get(names);
    if (known === undefined) counted.set(names, { events: 1, lastRow: row });
    else known.events += 1;
  }
  for (const { events, lastRow } of counted.values()) {
    add(textAt(source, lastRow), textAt(stream, lastRow), events, lastRow);
  }
}
