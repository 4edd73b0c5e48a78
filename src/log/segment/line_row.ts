/** The members of the rows of a row group, as the lines that they were sealed from spell them. */
import { Buffer } from "node:buffer";
import { ABSENT, type ColumnValues, repeatsLast, timeAt } from "../parquet/column_values.ts";
import { escapedText, needsEscape, viewFor } from "../line/line_bytes.ts";
import { LINE_FIXED_BYTES } from "../line/line_layout.ts";
import type { LineColumns } from "./line_assembler.ts";

/** The columns of a line, with or without its payload. */
type RowColumns = Omit<LineColumns, "payload"> & Partial<Pick<LineColumns, "payload">>;

/** A run of bytes somewhere. */
export interface Slice {
  bytes: Uint8Array;
  /** Of `bytes`. */
  view: DataView;
  start: number;
  end: number;
}

/** The members of a line; strings as they are spelled in it, without their quotes. */
export interface LineMembers {
  /** 16 bytes. */
  eventId: Slice;
  source: Slice;
  stream: Slice;
  recordKey: Slice;
  kind: Slice;
  occurredAt: Slice | null;
  /** 24 characters. */
  observedAt: Slice;
  payload: Slice;
  /** 32 bytes. */
  contentHash: Slice;
  batchId: Slice;
  /** 32 bytes. */
  eventHash: Slice;
}

/** The members of one row after the other, as its line spells them. */
export class LineRow {
  readonly #columns: RowColumns;
  readonly members: LineMembers = {
    eventId: emptySlice(),
    source: emptySlice(),
    stream: emptySlice(),
    recordKey: emptySlice(),
    kind: emptySlice(),
    occurredAt: null,
    observedAt: emptySlice(),
    payload: sliceOf(Buffer.from("null")),
    contentHash: emptySlice(),
    batchId: emptySlice(),
    eventHash: emptySlice(),
  };
  readonly #occurredAt = emptySlice();

  constructor(columns: RowColumns) {
    this.#columns = columns;
  }

  /** Room that the line of this row takes at the most. */
  get lineBytesMax(): number {
    const { source, stream, recordKey, kind, occurredAt, payload, batchId } = this.members;
    return LINE_FIXED_BYTES + length(source) + length(stream) + length(recordKey) + length(kind) +
      (occurredAt === null ? 0 : length(occurredAt)) + length(payload) + length(batchId);
  }

  /** Rows are gone to in their order. @throws {SegmentError} */
  moveTo(row: number): void {
    const { members } = this;
    const columns = this.#columns;
    setSlice(members.eventId, columns.event_id, row);
    setText(members.source, columns.source, row);
    setText(members.stream, columns.stream, row);
    setText(members.recordKey, columns.record_key, row);
    setText(members.kind, columns.kind, row);
    const isDated = columns.occurred_at.starts[row] !== ABSENT;
    if (isDated) setText(this.#occurredAt, columns.occurred_at, row);
    members.occurredAt = isDated ? this.#occurredAt : null;
    setTime(members.observedAt, columns.observed_at, row);
    if (columns.payload !== undefined) setSlice(members.payload, columns.payload, row);
    setSlice(members.contentHash, columns.content_hash, row);
    setText(members.batchId, columns.batch_id, row);
    setSlice(members.eventHash, columns.event_hash, row);
  }
}

function sliceOf(bytes: Uint8Array): Slice {
  return { bytes, view: viewFor(bytes), start: 0, end: bytes.length };
}

function emptySlice(): Slice {
  return sliceOf(Buffer.alloc(0));
}

function length({ start, end }: Slice): number {
  return end - start;
}

function setSlice(slice: Slice, { bytes, view, starts, ends }: ColumnValues, row: number): void {
  slice.bytes = bytes;
  slice.view = view;
  slice.start = starts[row]!;
  slice.end = ends[row]!;
}

function setText(slice: Slice, column: ColumnValues, row: number): void {
  if (repeatsLast(column, row)) return;
  const { bytes, starts, ends } = column;
  const start = starts[row]!;
  const end = ends[row]!;
  if (!needsEscape(bytes, start, end)) {
    setSlice(slice, column, row);
    return;
  }
  const text = escapedText(bytes, start, end);
  Object.assign(slice, sliceOf(text));
}

function setTime(slice: Slice, column: ColumnValues, row: number): void {
  if (repeatsLast(column, row)) return;
  Object.assign(slice, sliceOf(timeAt(column, row)));
}
