/** Finds a batch in a segment. */
import { Buffer } from "node:buffer";
import { type ColumnValues, hexAt, isValueAt, uuidAt } from "./column_values.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import { batchHash } from "../index/key_hash.ts";
import type { Segment } from "./segment_reader.ts";

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
  columns: Record<"source" | "batch_id", ColumnValues>,
  source: string,
  batchId: string,
): number[] {
  const sourceBytes = Buffer.from(source);
  const idBytes = Buffer.from(batchId);
  return [...columns.batch_id.starts.keys()].filter((row) =>
    isValueAt(columns.batch_id, row, idBytes) && isValueAt(columns.source, row, sourceBytes)
  );
}
