/**
 * Checks one segment against what the manifest says of it: the bytes of the file, its form, and
 * that its events are the next ones of the log. Reads it row group by row group.
 */
import { createHash } from "node:crypto";
import { Buffer } from "node:buffer";
import { type ColumnValues, uuidAt } from "../parquet/column_values.ts";
import type { HistoryCheck } from "./history_check.ts";
import { hashAhead, type HashedLines } from "./line_hashing.ts";
import { FULL_SPEED, type Pace } from "../sealing/pace.ts";
import { type BatchRun, batchRuns } from "../segment/segment_batches.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { SegmentIndexCheck } from "../segment/segment_index_check.ts";
import type { SegmentFacts } from "../segment/segment_metadata.ts";
import { LineRow } from "../segment/line_row.ts";
import { openSegment, type Segment } from "../segment/segment_reader.ts";
import { COLUMN_NAMES, type ColumnName } from "../segment/segment_schema.ts";
import { isNotFound, type Storage, type StorageFile } from "../storage/storage.ts";
import { VerifyFailure } from "./verify_failure.ts";

const CHUNK_BYTES = 1024 * 1024;

/** A segment as the manifest names it. */
export interface SegmentEntry extends SegmentFacts {
  path: string;
}

/**
 * Feeds a segment to `history`, which has taken in all that comes before it. The segment is read
 * without its payloads unless the chain is followed.
 * @throws {VerifyFailure} the first check that does not hold.
 */
export async function verifySegment(
  storage: Storage,
  entry: SegmentEntry,
  history: HistoryCheck,
): Promise<void> {
  const { path } = entry;
  history.enterFile(path, "segment_invalid");
  await checkFile(storage, entry);
  try {
    const segment = await openSegment(storage, path);
    try {
      checkFacts(segment, entry);
      history.checkHead(entry.previous_head);
      await checkRows(segment, history);
      history.checkHead(entry.head);
    } finally {
      await segment.close();
    }
  } catch (error) {
    if (!(error instanceof SegmentError)) throw error;
    const options = { cause: error };
    throw new VerifyFailure(error.fault, error.message, { path }, options);
  }
}

/** The bytes of the file are those of the manifest. @throws {VerifyFailure} */
export async function checkFile(
  storage: Storage,
  { path, bytes, sha256 }: SegmentEntry,
  pace: Pace = FULL_SPEED,
): Promise<void> {
  const file = await openNamed(storage, path);
  try {
    const sizeBytes = await file.size();
    if (sizeBytes !== bytes) {
      const values = { path, expected: bytes, found: sizeBytes };
      throw new VerifyFailure("file_hash_mismatch", "the size of the file in bytes", values);
    }
    const found = await hashFile(file, sizeBytes, pace);
    if (found !== sha256) {
      const values = { path, expected: sha256, found };
      throw new VerifyFailure("file_hash_mismatch", "the SHA-256 of the file", values);
    }
  } finally {
    await file.close();
  }
}

async function openNamed(storage: Storage, path: string): Promise<StorageFile> {
  try {
    return await storage.open(path, "read");
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const options = { cause: error };
    throw new VerifyFailure("manifest_invalid", "it names a missing file", { path }, options);
  }
}

async function hashFile(file: StorageFile, sizeBytes: number, pace: Pace): Promise<string> {
  const hash = createHash("sha256");
  const chunk = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, sizeBytes));
  for (let offset = 0; offset < sizeBytes;) {
    const readBytes = await file.read(chunk, offset);
    if (readBytes === 0) break;
    pace();
    hash.update(chunk.subarray(0, readBytes));
    offset += readBytes;
  }
  return hash.digest("hex");
}

const FACTS = [
  ...["events", "batches", "first_event_id", "last_event_id"] as const,
  ...["previous_head", "head"] as const,
];

/** The file says of itself what the manifest says of it. @throws {VerifyFailure} */
export function checkFacts({ path, metadata }: Segment, entry: SegmentEntry): void {
  for (const fact of FACTS) {
    if (metadata[fact] === entry[fact]) continue;
    const values = { path, expected: entry[fact], found: metadata[fact] };
    throw new VerifyFailure("segment_invalid", `its ${fact} in the manifest and footer`, values);
  }
}

async function checkRows(segment: Segment, history: HistoryCheck): Promise<void> {
  const rows = new RowsCheck(segment, history);
  const { chain, hashing } = history;
  if (!chain) {
    for await (const rowGroup of readRowGroups(segment, WITHOUT_PAYLOAD)) {
      await rows.checkRowGroup(rowGroup);
    }
  } else if (hashing === null) {
    for await (const rowGroup of readLines(segment)) {
      await rows.checkLines({ ...rowGroup, areHashed: false });
    }
  } else {
    for await (const rowGroup of hashAhead(readLines(segment), hashing)) {
      await rows.checkLines(rowGroup);
    }
  }
  await rows.finish();
}

/** A row group as it is checked. */
interface RowGroupContent {
  number: number;
  columns: Omit<Record<ColumnName, ColumnValues>, "payload">;
  runs: BatchRun[];
}

async function* readRowGroups(
  segment: Segment,
  names: readonly ColumnName[],
): AsyncGenerator<RowGroupContent, void> {
  for (const [number, { rows }] of segment.rowGroups.entries()) {
    const columns = await segment.readColumns(number, names);
    yield { number, columns, runs: batchRuns(columns, rows) };
  }
}

/** The row groups with their lines, which only `chain` needs. */
async function* readLines(
  segment: Segment,
): AsyncGenerator<RowGroupContent & { lines: Buffer }, void> {
  for await (const rowGroup of readRowGroups(segment, COLUMN_NAMES)) {
    yield {
      ...rowGroup,
      lines: segment.assemble(rowGroup.columns as Record<ColumnName, ColumnValues>),
    };
  }
}

/** Columns without those that only `chain` needs. */
const WITHOUT_PAYLOAD = COLUMN_NAMES.filter((name) => name !== "payload");

class RowsCheck {
  readonly #segment: Segment;
  readonly #history: HistoryCheck;
  readonly #index: SegmentIndexCheck;
  /** The batch whose rows come; it may go on in the next row group. */
  #batch: BatchRun | null = null;
  #batches = 0;

  constructor(segment: Segment, history: HistoryCheck) {
    this.#segment = segment;
    this.#history = history;
    this.#index = new SegmentIndexCheck(segment, { keys: history.chain });
  }

  checkRowGroup(rowGroup: RowGroupContent): Promise<void> {
    const row = new LineRow(rowGroup.columns);
    return this.#check(rowGroup, (number) => {
      row.moveTo(number);
      this.#history.addRow(row);
    });
  }

  checkLines({ lines, areHashed, ...rowGroup }: RowGroupContent & HashedLines): Promise<void> {
    let at = 0;
    return this.#check(rowGroup, () => {
      at = this.#history.addLine(lines, at, areHashed);
    });
  }

  async finish(): Promise<void> {
    this.#endBatch();
    await this.#index.finish();
    if (this.#batches !== this.#segment.metadata.batches) {
      throw new SegmentError(
        `${this.#segment.path}: ${this.#batches} batches, but the footer says ` +
          `${this.#segment.metadata.batches}`,
      );
    }
  }

  /** @param add takes in the event of a row; called for each in its order. */
  async #check(rowGroup: RowGroupContent, add: (row: number) => void): Promise<void> {
    const { number, columns, runs } = rowGroup;
    for (const run of runs) {
      if (!this.#continues(run)) this.#startBatch(run);
      for (let row = run.startRow; row < run.endRow; row++) add(row);
    }
    this.#checkIds(number, columns.event_id);
    await this.#index.checkRowGroup(number, columns, runs);
  }

  #continues({ source, batchId, batchDigest }: BatchRun): boolean {
    const batch = this.#batch;
    return batch !== null && batch.source === source && batch.batchId === batchId &&
      batch.batchDigest === batchDigest;
  }

  #startBatch(run: BatchRun): void {
    this.#endBatch();
    this.#batch = run;
    this.#batches += 1;
    const { source, batchId, batchDigest } = run;
    this.#history.startBatch({ source, batch_id: batchId, batch_digest: batchDigest });
  }

  #endBatch(): void {
    if (this.#batch !== null) this.#history.endBatch();
    this.#batch = null;
  }

  /** The bounds of the ids, by which row groups are found, are those of the first and last row. */
  #checkIds(number: number, ids: ColumnValues): void {
    const { rows, firstEventId, lastEventId } = this.#segment.rowGroups[number]!;
    if (uuidAt(ids, 0) === firstEventId && uuidAt(ids, rows - 1) === lastEventId) return;
    throw new SegmentError(
      `${this.#segment.path}: row group ${number} holds events ${uuidAt(ids, 0)} to ` +
        `${uuidAt(ids, rows - 1)}, but the footer says ${firstEventId} to ${lastEventId}`,
    );
  }
}
