/** Groups the rows in a segment by batch, and finds a batch. */
import { Buffer, isUtf8 } from "node:buffer";
import {
  bytesAt,
  type ColumnValues,
  hexAt,
  isValueAt,
  repeatsAt,
  textAt,
  uuidAt,
} from "./column_values.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import { SegmentError } from "../storage/errors.ts";
import { batchHash } from "../index/key_hash.ts";
import type { Segment } from "./segment_reader.ts";

/** Rows from one batch in one row group; the batch may continue in the next. */
export interface BatchRun {
  source: string;
  batch_id: string;
  /** 64 lowercase hex digits. */
  batch_digest: string;
  rows: number;
}

type BatchColumns = Record<"source" | "batch_id" | "batch_digest", ColumnValues>;

/**
 * Returns the batches in a row group, in order.
 * @throws {SegmentError} if a batch has two digests, or a source or id that is not valid UTF-8.
 */
export function batchRuns(columns: BatchColumns, rows: number): BatchRun[] {
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

/**
 * Returns the entry for a committed batch; null if the segment does not contain it. Decodes four
 * columns in the row group where the batch starts, and in those where it continues.
 * @throws {SegmentError}
 */
export async function findBatch(
  segment: Segment,
  source: string,
  batchId: string,
): Promise<BatchEntry | null> {
  let entry = null as BatchEntry | null;
  const rowGroups = await segment.rowGroups();
  for (let start of await segment.rowGroupsWith("identities", batchHash(source, batchId))) {
    for (; start < rowGroups.length; start++) {
      const columns = await segment.readColumns(start, ENTRY_COLUMNS);
      const rows = rowsOfBatch(columns, source, batchId);
      const [first] = rows;
      if (first === undefined) break;
      const last = rows.at(-1)!;
      entry = {
        batch_digest: hexAt(columns.batch_digest, first),
        batch_id: batchId,
        events: (entry?.events ?? 0) + rows.length,
        first_event_id: entry?.first_event_id ?? uuidAt(columns.event_id, first),
        last_event_id: uuidAt(columns.event_id, last),
        source,
      };
      // A batch continues in the next row group only if it reaches the end of this one.
      if (last + 1 < rowGroups[start]!.rows) break;
    }
    if (entry !== null) break;
  }
  return entry;
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
