/**
 * Reassembles the stored lines in a row group from its columns, byte for byte as they were sealed.
 * This is the hot loop of sealed replay, so values are copied word by word.
 */
import { Buffer } from "node:buffer";
import * as layout from "../../event/line_layout.ts";
import { type Piece, pieceOf } from "../../event/line_layout.ts";
import { COMMIT_BODY_BYTES_MAX } from "../../limits.ts";
import {
  copyBytes,
  HASH_BYTES,
  needsEscape,
  putHex,
  putUuid,
  spelledText,
  viewFor,
  viewOf,
} from "../line/line_bytes.ts";
import { ABSENT, type ColumnValues, timeAt } from "./column_values.ts";
import { SegmentError } from "../storage/errors.ts";
import { COLUMN_NAMES, type ColumnName } from "./segment_schema.ts";
import { sumOf } from "../../sum.ts";

/** The columns in a row group. Lines do not contain `batch_digest`. */
export type LineColumns = Record<ColumnName, ColumnValues>;

/** Copies of at least this many bytes use `Uint8Array.set`. */
const LONG_COPY_BYTES = 512;

const LF = pieceOf("\n");

/** Assembles one line for each of `rows`, each with its LF. @throws {SegmentError} */
export function assembleLines(
  columns: LineColumns,
  rows: readonly number[] = [...columns.event_id.starts.keys()],
): Buffer {
  const valueBytes = sumOf(COLUMN_NAMES, (name) => sizeOf(columns[name], rows));
  // Lines can be larger than the columns, since rows may share a dictionary value.
  if (valueBytes > COMMIT_BODY_BYTES_MAX) {
    const limit = `more than ${COMMIT_BODY_BYTES_MAX}`;
    throw new SegmentError(`a row group has ${valueBytes} bytes of values, ${limit}`);
  }
  const linesBytesMax = rows.length * layout.LINE_FIXED_BYTES + valueBytes;
  return new LineAssembler(columns, linesBytesMax).assemble(rows);
}

/** Returns the total size of a column's values in `rows`. */
function sizeOf({ starts, ends }: ColumnValues, rows: readonly number[]): number {
  let sizeBytes = 0;
  // An absent value has equal start and end, so it adds nothing.
  for (const row of rows) sizeBytes += ends[row]! - starts[row]!;
  return sizeBytes;
}

/** Growth factor of a full buffer. Its bound is near, so doubling would waste memory. */
const GROWTH_FACTOR = 1.25;

class LineAssembler {
  readonly #columns: LineColumns;
  #bytes: Buffer;
  #view: DataView;
  #end = 0;
  /** Upper bound on the size of the lines; raised when strings need escapes. */
  #linesBytesMax: number;
  /** The last formatted time and its value's offset. Rows in a batch have the same offset. */
  #observedAt: Piece = layout.OBSERVED_AT;
  #observedAtStart = ABSENT;

  constructor(columns: LineColumns, linesBytesMax: number) {
    this.#columns = columns;
    this.#linesBytesMax = linesBytesMax;
    this.#bytes = Buffer.allocUnsafeSlow(linesBytesMax);
    this.#view = viewFor(this.#bytes);
  }

  assemble(rows: readonly number[]): Buffer {
    for (const row of rows) this.#putLine(row);
    return this.#bytes.subarray(0, this.#end);
  }

  #putLine(row: number): void {
    const { event_id, source, stream, record_key, kind, occurred_at } = this.#columns;
    const { observed_at, content_hash, batch_id, event_hash } = this.#columns;
    this.#putPiece(layout.OPENING);
    this.#end = putUuid(this.#view, this.#end, event_id.bytes, event_id.starts[row]!);
    this.#putPiece(layout.SOURCE);
    this.#putText(source, row);
    this.#putPiece(layout.STREAM);
    this.#putText(stream, row);
    this.#putPiece(layout.RECORD_KEY);
    this.#putText(record_key, row);
    this.#putPiece(layout.KIND);
    this.#putText(kind, row);
    if (occurred_at.starts[row] !== ABSENT) {
      this.#putPiece(layout.OCCURRED_AT);
      this.#putText(occurred_at, row);
    }
    this.#putPiece(layout.OBSERVED_AT);
    this.#putPiece(this.#observedAtOf(observed_at, row));
    this.#putPiece(layout.PAYLOAD);
    this.#putValue(this.#columns.payload, row);
    this.#putPiece(layout.CONTENT_HASH);
    this.#putHash(content_hash, row);
    this.#putPiece(layout.BATCH_ID);
    this.#putText(batch_id, row);
    this.#putPiece(layout.EVENT_HASH);
    this.#putHash(event_hash, row);
    this.#putPiece(layout.CLOSING);
    this.#putPiece(LF);
  }

  #observedAtOf(column: ColumnValues, row: number): Piece {
    const start = column.starts[row]!;
    if (start !== this.#observedAtStart) this.#observedAt = pieceOf(timeAt(column, row));
    this.#observedAtStart = start;
    return this.#observedAt;
  }

  #putPiece({ view, sizeBytes }: Piece): void {
    copyBytes(view, 0, this.#view, this.#end, sizeBytes);
    this.#end += sizeBytes;
  }

  #putText(column: ColumnValues, row: number): void {
    const { bytes, starts, ends } = column;
    const start = starts[row]!;
    const end = ends[row]!;
    if (needsEscape(bytes, start, end)) {
      const escaped = spelledText(bytes.toString("utf8", start, end));
      this.#makeRoom(escaped.length - (end - start));
      this.#bytes.set(escaped, this.#end);
      this.#end += escaped.length;
    } else {
      this.#putValue(column, row);
    }
  }

  #putValue({ bytes, view, starts, ends }: ColumnValues, row: number): void {
    const start = starts[row]!;
    const sizeBytes = ends[row]! - start;
    if (sizeBytes < LONG_COPY_BYTES) copyBytes(view, start, this.#view, this.#end, sizeBytes);
    else this.#bytes.set(viewOf(bytes, start, start + sizeBytes), this.#end);
    this.#end += sizeBytes;
  }

  #putHash({ bytes, starts }: ColumnValues, row: number): void {
    this.#end = putHex(this.#view, this.#end, bytes, starts[row]!, HASH_BYTES);
  }

  /** Raises the upper bound by `moreBytes` and grows the buffer if necessary. */
  #makeRoom(moreBytes: number): void {
    this.#linesBytesMax += moreBytes;
    if (this.#linesBytesMax <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.ceil(GROWTH_FACTOR * this.#linesBytesMax));
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
    this.#view = viewFor(larger);
  }
}
