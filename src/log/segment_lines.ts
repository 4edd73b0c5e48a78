/**
 * Puts the stored lines of a row group together from its columns, byte for byte as they were
 * sealed.
 */
import { Buffer } from "node:buffer";
import { formatTimestamp } from "../event/timestamp.ts";
import { ABSENT, type ColumnValues } from "./column_values.ts";
import { escapedText, needsEscape, viewFor } from "./line_bytes.ts";
import { FULL_SPEED, type Pace } from "./pace.ts";
import { SegmentError } from "./segment_error.ts";
import type { ColumnName } from "./segment_schema.ts";
import {
  LINE_FIXED_BYTES,
  type LineMembers,
  OBSERVED_AT_CHARS,
  type Slice,
  StoredEvent,
} from "./stored_event.ts";

/** The columns that lines are made of. Without `payload` every payload is `null`. */
export type LineColumns =
  & Record<Exclude<ColumnName, "payload" | "batch_digest">, ColumnValues>
  & { payload?: ColumnValues };

/** What a Date can hold (ECMA-262, "Time Values and Time Range"). */
const DATE_MS_MAX = 8.64e15;

/**
 * The lines of as many rows as the columns have values, each with its LF, in memory of their own.
 * @throws {SegmentError}
 */
export function assembleLines(columns: LineColumns, pace: Pace = FULL_SPEED): Buffer {
  const rows = columns.event_id.starts.length;
  const row = new LineRow(columns);
  let lines = Buffer.allocUnsafeSlow(rows * LINE_FIXED_BYTES + valueBytes(columns));
  let view = viewFor(lines);
  let at = 0;
  for (let number = 0; number < rows; number++) {
    pace();
    row.moveTo(number);
    // Only escapes can make a line longer than its values.
    if (at + row.lineBytesMax > lines.length) {
      const larger = Buffer.allocUnsafeSlow(2 * lines.length + row.lineBytesMax);
      lines.copy(larger, 0, 0, at);
      lines = larger;
      view = viewFor(lines);
    }
    at = StoredEvent.put(lines, view, at, row.members);
  }
  return lines.subarray(0, at);
}

function valueBytes(columns: LineColumns): number {
  let sizeBytes = 0;
  for (const { starts, ends } of Object.values(columns)) {
    // Of an absent value both are the same.
    for (let row = 0; row < starts.length; row++) sizeBytes += ends[row]! - starts[row]!;
  }
  return sizeBytes;
}

/** The members of one row after the other, as its line spells them. */
export class LineRow {
  readonly #columns: LineColumns;
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

  constructor(columns: LineColumns) {
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
  const timeMs = column.bytes.readBigInt64LE(column.starts[row]!);
  const spelled = spellTime(Number(timeMs));
  Object.assign(slice, sliceOf(Buffer.from(spelled)));
}

/** Whether a row has the same dictionary value as the one before. */
function repeatsLast({ starts, ends }: ColumnValues, row: number): boolean {
  return row > 0 && starts[row] === starts[row - 1] && ends[row] === ends[row - 1];
}

function spellTime(timeMs: number): string {
  const spelled = Math.abs(timeMs) <= DATE_MS_MAX ? formatTimestamp(timeMs) : "";
  if (spelled.length !== OBSERVED_AT_CHARS) {
    throw new SegmentError(`observed_at: ${timeMs} ms is outside the years 0000 to 9999`);
  }
  return spelled;
}
