/**
 * Puts the stored lines of a row group together from its columns, byte for byte as they were
 * sealed. This is what reading sealed history spends most on: what a line has in common with the
 * one before is put together once, and all is copied in words.
 */
import { Buffer } from "node:buffer";
import { MEMORY_GROWTH_FACTOR } from "../../limits.ts";
import { ABSENT, type ColumnValues, repeatsLast, timeAt } from "../parquet/column_values.ts";
import {
  COPY_MARGIN_BYTES,
  copyWords,
  escapedText,
  HASH_BYTES,
  needsEscape,
  pieceOf,
  putBytes,
  putHex,
  putPiece,
  putUuid,
  viewFor,
  viewOf,
} from "../line/line_bytes.ts";
import {
  BATCH_ID,
  CLOSING,
  CONTENT_HASH,
  EVENT_HASH,
  KIND,
  LINE_FIXED_BYTES,
  OBSERVED_AT,
  OCCURRED_AT,
  OPENING,
  PAYLOAD,
  RECORD_KEY,
  SOURCE,
  STREAM,
} from "../line/line_layout.ts";
import { FULL_SPEED, type Pace } from "../sealing/pace.ts";
import type { ColumnName } from "./segment_schema.ts";

/** The columns that lines are made of. Without `payload` every payload is `null`. */
export type LineColumns =
  & Record<Exclude<ColumnName, "payload" | "batch_digest">, ColumnValues>
  & { payload?: ColumnValues };

/** A copy of at least this many bytes is left to `Uint8Array.set`. */
const LONG_COPY_BYTES = 512;
const NULL = Buffer.from("null");
const LF = Buffer.from("\n");

/** Memory that lines are put into, one after the other. */
export class LineMemory {
  bytes: Buffer;
  /** Of `bytes`. */
  view: DataView;
  /** Where the next line begins. */
  end = 0;

  constructor(sizeBytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(sizeBytes);
    this.view = viewFor(this.bytes);
  }

  /** Drops the lines that are there. */
  clear(): void {
    this.end = 0;
  }

  /** Makes room for `sizeBytes` more and what `copyWords()` puts behind them. */
  reserve(sizeBytes: number): void {
    const neededBytes = this.end + sizeBytes + COPY_MARGIN_BYTES;
    if (neededBytes <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(
      Math.max(neededBytes, Math.ceil(MEMORY_GROWTH_FACTOR * this.bytes.length)),
    );
    this.bytes.copy(larger, 0, 0, this.end);
    this.bytes = larger;
    this.view = viewFor(larger);
  }

  /** The lines so far. */
  get lines(): Buffer {
    return this.bytes.subarray(0, this.end);
  }
}

export interface AssembleOptions {
  /** Paces the work. */
  pace?: Pace;
  /** Memory for the lines, in place of those that are there; such of their own if absent. */
  memory?: LineMemory;
}

/**
 * The lines of as many rows as the columns have values, each with its LF.
 * @throws {SegmentError}
 */
export function assembleLines(
  columns: LineColumns,
  { pace, memory = new LineMemory(0) }: AssembleOptions = {},
): Buffer {
  const rows = columns.event_id.starts.length;
  memory.clear();
  memory.reserve(rows * LINE_FIXED_BYTES + valueBytes(columns));
  putLines(memory, columns, pace);
  return memory.lines;
}

/** Appends the lines of as many rows as the columns have values. @throws {SegmentError} */
export function putLines(into: LineMemory, columns: LineColumns, pace: Pace = FULL_SPEED): void {
  const rows = columns.event_id.starts.length;
  const assembler = new LineAssembler(columns);
  for (let row = 0; row < rows; row++) {
    pace();
    assembler.put(into, row);
  }
}

function valueBytes(columns: LineColumns): number {
  let sizeBytes = 0;
  for (const { starts, ends } of Object.values(columns)) {
    // Of an absent value both are the same.
    for (let row = 0; row < starts.length; row++) sizeBytes += ends[row]! - starts[row]!;
  }
  return sizeBytes;
}

/** Parts of a line in a row that lines mostly have in common with the one before. */
class SharedParts {
  readonly #memory = new LineMemory(256);

  get sizeBytes(): number {
    return this.#memory.end;
  }

  set(...parts: readonly Uint8Array[]): void {
    const memory = this.#memory;
    memory.clear();
    for (const part of parts) {
      memory.reserve(part.length);
      memory.end = putBytes(memory.bytes, memory.end, part);
    }
  }

  /** Returns where the copy ends. */
  put(into: DataView, at: number): number {
    const { view, end } = this.#memory;
    copyWords(view, 0, into, at, end);
    return at + end;
  }
}

const OPENING_PIECE = pieceOf(OPENING);
const OCCURRED_AT_PIECE = pieceOf(OCCURRED_AT);
const CONTENT_HASH_PIECE = pieceOf(CONTENT_HASH);
const CLOSING_PIECE = pieceOf(Buffer.concat([CLOSING, LF]));
const NULL_PIECE = pieceOf(NULL);

/** Puts lines together of rows that are gone to in their order. */
class LineAssembler {
  readonly #columns: LineColumns;
  /** From the source to before the key. */
  readonly #names = new SharedParts();
  readonly #kind = new SharedParts();
  readonly #observedAt = new SharedParts();
  readonly #batchId = new SharedParts();

  constructor(columns: LineColumns) {
    this.#columns = columns;
  }

  put(into: LineMemory, row: number): void {
    const { event_id, record_key, occurred_at, payload, content_hash, event_hash } = this.#columns;
    this.#setPieces(row);
    const key = spelledAt(record_key, row);
    const isDated = occurred_at.starts[row] !== ABSENT;
    const time = isDated ? spelledAt(occurred_at, row) : null;
    into.reserve(this.#lineBytesMax(row, key, time));
    const { bytes, view } = into;
    let at = putPiece(view, into.end, OPENING_PIECE);
    at = putUuid(view, at, event_id.bytes, event_id.starts[row]!);
    at = this.#names.put(view, at);
    at = key === null ? putValue(view, at, record_key, row) : putBytes(bytes, at, key);
    at = this.#kind.put(view, at);
    if (isDated) {
      at = putPiece(view, at, OCCURRED_AT_PIECE);
      at = time === null ? putValue(view, at, occurred_at, row) : putBytes(bytes, at, time);
    }
    at = this.#observedAt.put(view, at);
    at = payload === undefined
      ? putPiece(view, at, NULL_PIECE)
      : putPayload(into, at, payload, row);
    at = putPiece(view, at, CONTENT_HASH_PIECE);
    at = putHex(view, at, content_hash.bytes, content_hash.starts[row]!, HASH_BYTES);
    at = this.#batchId.put(view, at);
    at = putHex(view, at, event_hash.bytes, event_hash.starts[row]!, HASH_BYTES);
    into.end = putPiece(view, at, CLOSING_PIECE);
  }

  #setPieces(row: number): void {
    const { source, stream, kind, observed_at, batch_id } = this.#columns;
    if (!repeatsLast(source, row) || !repeatsLast(stream, row)) {
      this.#names.set(SOURCE, textAt(source, row), STREAM, textAt(stream, row), RECORD_KEY);
    }
    if (!repeatsLast(kind, row)) this.#kind.set(KIND, textAt(kind, row));
    if (!repeatsLast(observed_at, row)) {
      this.#observedAt.set(OBSERVED_AT, timeAt(observed_at, row), PAYLOAD);
    }
    if (!repeatsLast(batch_id, row)) {
      this.#batchId.set(BATCH_ID, textAt(batch_id, row), EVENT_HASH);
    }
  }

  #lineBytesMax(row: number, key: Uint8Array | null, time: Uint8Array | null): number {
    const { record_key, occurred_at, payload } = this.#columns;
    return LINE_FIXED_BYTES + this.#names.sizeBytes + this.#kind.sizeBytes +
      this.#batchId.sizeBytes + (key?.length ?? sizeAt(record_key, row)) +
      (time?.length ?? sizeAt(occurred_at, row)) +
      (payload === undefined ? NULL.length : sizeAt(payload, row));
  }
}

/** 0 of an absent value. */
function sizeAt({ starts, ends }: ColumnValues, row: number): number {
  return ends[row]! - starts[row]!;
}

/** A text as its line spells it; null when that is as it stands in the column. */
function spelledAt({ bytes, starts, ends }: ColumnValues, row: number): Uint8Array | null {
  const start = starts[row]!;
  const end = ends[row]!;
  return needsEscape(bytes, start, end) ? escapedText(bytes, start, end) : null;
}

/** The same, wherever it stands. */
function textAt(column: ColumnValues, row: number): Uint8Array {
  const { bytes, starts, ends } = column;
  return spelledAt(column, row) ?? viewOf(bytes, starts[row]!, ends[row]!);
}

function putValue(into: DataView, at: number, { view, starts, ends }: ColumnValues, row: number) {
  const start = starts[row]!;
  const sizeBytes = ends[row]! - start;
  copyWords(view, start, into, at, sizeBytes);
  return at + sizeBytes;
}

function putPayload(into: LineMemory, at: number, column: ColumnValues, row: number): number {
  const { bytes, starts, ends } = column;
  return sizeAt(column, row) < LONG_COPY_BYTES
    ? putValue(into.view, at, column, row)
    : putBytes(into.bytes, at, bytes, starts[row]!, ends[row]!);
}
