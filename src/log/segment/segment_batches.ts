/** The batches of a segment: which rows of a row group are whose, and where a batch is. */
import { Buffer, isUtf8 } from "node:buffer";
import {
  bytesAt,
  type ColumnValues,
  hexAt,
  repeatsAt,
  rowsWith,
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
 * The entry of a committed batch; null when the segment does not hold it. Reads the ids of the row
 * groups that may hold it by their Bloom filters, and of one with it what the entry needs.
 * @throws {SegmentError}
 */
export async function findBatch(
  segment: Segment,
  source: string,
  batchId: string,
): Promise<BatchEntry | null> {
  const wantedSource = Buffer.from(source);
  const wantedId = Buffer.from(batchId);
  let entry: BatchEntry | null = null;
  for (const number of await segment.rowGroupsWithBatch(wantedId)) {
    const { rows } = segment.rowGroups[number]!;
    const columns = await segment.readColumns(number, ["source", "batch_id"]);
    const found = rowsWith([[columns.batch_id, wantedId], [columns.source, wantedSource]]);
    const startRow = found[0];
    if (startRow === undefined) continue;
    // The rows of a batch stand together.
    let endRow = startRow + 1;
    while (found[endRow - startRow] === endRow) endRow += 1;
    const part = await readEntry(segment, number, startRow, endRow);
    entry = { ...part, source, batch_id: batchId, ...(entry !== null && joined(entry, part)) };
    if (endRow < rows) break;
  }
  return entry;
}

type EntryPart = Pick<BatchEntry, "batch_digest" | "events" | "first_event_id" | "last_event_id">;

async function readEntry(
  segment: Segment,
  number: number,
  startRow: number,
  endRow: number,
): Promise<EntryPart> {
  const ends = [startRow, endRow - 1];
  const columns = await segment.readColumns(number, ["event_id", "batch_digest"], {
    rows: ends,
  });
  return {
    batch_digest: hexAt(columns.batch_digest, 0),
    events: endRow - startRow,
    first_event_id: uuidAt(columns.event_id, 0),
    last_event_id: uuidAt(columns.event_id, 1),
  };
}

function joined(first: EntryPart, rest: EntryPart): Partial<EntryPart> {
  return { events: first.events + rest.events, first_event_id: first.first_event_id };
}
