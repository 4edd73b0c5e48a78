/**
 * Checks one segment by itself, row group by row group: its bytes, its footer, its lines and all
 * that a reader finds them by. The read-back of sealing and `verify` share it.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { HASH_BYTES } from "../line/line_bytes.ts";
import { type ColumnValues, constantValues } from "../parquet/column_values.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { Storage, StorageFile } from "../storage/storage.ts";
import { type BatchRun, batchRuns } from "./segment_batches.ts";
import { SegmentIndexCheck } from "./segment_index_check.ts";
import type { SegmentFacts } from "./segment_metadata.ts";
import { openSegment, type Segment } from "./segment_reader.ts";
import { COLUMN_NAMES, type ColumnName } from "./segment_schema.ts";

const CHUNK_BYTES = 1024 * 1024;

/** What the segment at a path has to be. */
export interface ExpectedSegment extends SegmentFacts {
  path: string;
}

/**
 * Opens a segment whose bytes and footer are those that are expected. The caller closes it.
 * @throws {SegmentError}
 */
export async function openChecked(storage: Storage, expected: ExpectedSegment): Promise<Segment> {
  await checkBytes(storage, expected);
  const segment = await openSegment(storage, expected.path);
  try {
    checkFacts(segment, expected);
    return segment;
  } catch (error) {
    await segment.close();
    throw error;
  }
}

async function checkBytes(storage: Storage, { path, bytes, sha256 }: ExpectedSegment) {
  const file = await storage.open(path, "read");
  try {
    const sizeBytes = await file.size();
    requireSame(path, "file_hash_mismatch", "the size of the file in bytes", bytes, sizeBytes);
    const found = await hashFile(file, sizeBytes);
    requireSame(path, "file_hash_mismatch", "the SHA-256 of the file", sha256, found);
  } finally {
    await file.close();
  }
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

const FACTS = [
  ...["events", "batches", "first_event_id", "last_event_id"] as const,
  ...["previous_head", "head"] as const,
];

/** The file says of itself what the manifest says of it. */
function checkFacts({ path, metadata }: Segment, expected: ExpectedSegment): void {
  for (const fact of FACTS) {
    const what = `its ${fact} in the manifest and footer`;
    requireSame(path, "segment_invalid", what, expected[fact], metadata[fact]);
  }
}

function requireSame(
  path: string,
  fault: "file_hash_mismatch" | "segment_invalid",
  what: string,
  expected: string | number,
  found: string | number,
): void {
  if (expected === found) return;
  throw new SegmentError(`${path}: ${what}: expected ${expected}, found ${found}`, { fault });
}

/** Rows of one batch in one row group. */
export interface BatchRows {
  source: string;
  batch_id: string;
  batch_digest: string;
  rows: number;
  /** False when the batch goes on from the row group before. */
  isStart: boolean;
}

/** The content of a row group. */
export interface CheckedRowGroup {
  /** Its stored lines, each with its LF. */
  lines: Buffer;
  /** All its rows, by batch. */
  batches: BatchRows[];
}

/** All columns but those that only `verify --chain` looks at, which take most of a segment. */
const BRIEF_COLUMNS = COLUMN_NAMES.filter((name) => name !== "payload" && name !== "event_hash");
const NULL = Buffer.from("null");
const ZERO_HASH = Buffer.alloc(HASH_BYTES);
const NO_MEMORY = Buffer.alloc(0);

/** Checks all rows of a segment against its footer, and hands them on. */
export class SegmentRowsCheck {
  readonly #segment: Segment;
  readonly #isFull: boolean;
  readonly #index: SegmentIndexCheck;
  #lastRun: BatchRun | null = null;
  #batches = 0;
  /** That of the lines before. */
  #memory: Buffer = NO_MEMORY;

  /**
   * @param full whether to read payloads and event hashes, which are made up in the lines
   *   otherwise, and to look up every `record_key`. That takes as long as all the rest.
   */
  constructor(segment: Segment, { full }: { full: boolean }) {
    this.#segment = segment;
    this.#isFull = full;
    this.#index = new SegmentIndexCheck(segment, { keys: full });
  }

  /**
   * The row groups in log order. What finds the rows of one is checked after the caller has seen
   * them, which tells more of what is wrong.
   * @throws {SegmentError}
   */
  async *rowGroups(): AsyncGenerator<CheckedRowGroup, void> {
    for (const [number, { rows }] of this.#segment.rowGroups.entries()) {
      const columns = await this.#readColumns(number, rows);
      const batches = batchRuns(columns, rows).map((run) => this.#enter(run));
      const lines = this.#segment.assemble(columns, this.#memory);
      this.#memory = Buffer.from(lines.buffer);
      yield { lines, batches };
      await this.#index.checkRowGroup(number, columns);
    }
  }

  /** To be called after the last row group. @throws {SegmentError} */
  async finish(): Promise<void> {
    await this.#index.finish();
    const { path, metadata } = this.#segment;
    if (this.#batches === metadata.batches) return;
    throw new SegmentError(
      `${path}: ${this.#batches} batches, but the footer says ${metadata.batches}`,
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
    const { source, batchId, batchDigest } = run;
    const last = this.#lastRun;
    const isStart = last === null || last.batchId !== batchId || last.source !== source;
    if (!isStart && last.batchDigest !== batchDigest) {
      throw new SegmentError(`${this.#segment.path}: batch ${batchId} has two digests`);
    }
    this.#lastRun = run;
    if (isStart) {
      this.#batches += 1;
      this.#index.addBatch(source, batchId);
    }
    const rows = run.endRow - run.startRow;
    return { source, batch_id: batchId, batch_digest: batchDigest, rows, isStart };
  }
}
