/** The batches of a segment: which rows of a row group are whose, and where a batch is. */
import { Buffer, isUtf8 } from "node:buffer";
import {
  bytesAt,
  type ColumnValues,
  hexAt,
  isValueAt,
  repeatsAt,
  textAt,
  uuidAt,
} from "../parquet/column_values.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { Segment } from "./segment_reader.ts";

/** Rows of one batch in one row group, which may be a part of it. */
export interface BatchRun {
  source: string;
  batchId: string;
  /** 64 lowercase hex digits. */
  batchDigest: string;
  /** The rows [startRow, endRow). */
  startRow: number;
  endRow: number;
}

/** The columns that tell batches apart. */
export const BATCH_COLUMNS = ["source", "batch_id", "batch_digest"] as const;
type BatchColumns = Record<typeof BATCH_COLUMNS[number], ColumnValues>;

/**
 * The batches of a row group in order.
 * @throws {SegmentError} when one has two digests, or no text for its source or id.
 */
export function batchRuns(columns: BatchColumns, rows: number): BatchRun[] {
  const runs: BatchRun[] = [];
  for (let startRow = 0; startRow < rows;) {
    const endRow = runEnd(columns, startRow, rows);
    runs.push({
      source: wholeTextAt(columns.source, startRow),
      batchId: wholeTextAt(columns.batch_id, startRow),
      batchDigest: hexAt(columns.batch_digest, startRow),
      startRow,
      endRow,
    });
    startRow = endRow;
  }
  return runs;
}

/** A text that stands for its bytes: no others decode to the same. */
function wholeTextAt(column: ColumnValues, row: number): string {
  const text = textAt(column, row);
  if (text.includes("\ufffd") && !isUtf8(bytesAt(column, row))) {
    throw new SegmentError(`row ${row} has a source or batch id that is no UTF-8`);
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

/**
 * The entry of a committed batch; null when the segment does not hold it. Decodes what the entry
 * needs of the row groups whose Bloom filters let the batch pass.
 * @throws {SegmentError}
 */
export async function findBatch(
  segment: Segment,
  source: string,
  batchId: string,
): Promise<BatchEntry | null> {
  /** The part of the batch in each row group. */
  const parts: BatchEntry[] = [];
  for (const number of await segment.rowGroupsWithBatch(batchId)) {
    const columns = await segment.readColumns(number, ENTRY_COLUMNS);
    const rows = rowsOfBatch(columns, source, batchId);
    const [first] = rows;
    if (first === undefined) continue;
    const last = rows.at(-1)!;
    parts.push({
      batch_digest: hexAt(columns.batch_digest, first),
      batch_id: batchId,
      events: rows.length,
      first_event_id: uuidAt(columns.event_id, first),
      last_event_id: uuidAt(columns.event_id, last),
      source,
    });
    // A batch that does not reach the end of a row group is not continued in the next one.
    if (last + 1 < segment.rowGroups[number]!.rows) break;
  }
  const [first] = parts;
  if (first === undefined) return null;
  const events = parts.reduce((sum, part) => sum + part.events, 0);
  return { ...first, events, last_event_id: parts.at(-1)!.last_event_id };
}

const ENTRY_COLUMNS = ["event_id", "source", "batch_id", "batch_digest"] as const;

function rowsOfBatch(
  columns: Pick<BatchColumns, "source" | "batch_id">,
  source: string,
  batchId: string,
): number[] {
  const sourceBytes = Buffer.from(source);
  const idBytes = Buffer.from(batchId);
  return [...columns.batch_id.starts.keys()].filter((row) =>
    isValueAt(columns.batch_id, row, idBytes) && isValueAt(columns.source, row, sourceBytes)
  );
}
