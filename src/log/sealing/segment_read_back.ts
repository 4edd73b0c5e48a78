/**
 * Reads a segment that has just been written back from the disk, before it takes the place of the
 * lines that it was made from: what is read must be those lines, and what finds them must be right.
 */
import { createHash } from "node:crypto";
import type { ColumnValues } from "../parquet/column_values.ts";
import { batchRuns } from "../segment/segment_batches.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import { SegmentIndexCheck } from "../segment/segment_index_check.ts";
import { openSegment, type Segment } from "../segment/segment_reader.ts";
import { COLUMN_NAMES, type ColumnName } from "../segment/segment_schema.ts";
import { checkFacts, checkFile } from "../verify/segment_verify.ts";
import type { WrittenSegment } from "../segment/segment_writer.ts";
import type { Storage } from "../storage/storage.ts";

/**
 * @throws {VerifyFailure} the file is not what was written.
 * @throws {SegmentError} it is, but is not what was to be sealed.
 */
export async function readBack(
  storage: Storage,
  path: string,
  { facts, linesSha256 }: WrittenSegment,
  throttle: () => void = () => {},
): Promise<void> {
  await checkFile(storage, { path, ...facts });
  const segment = await openSegment(storage, path);
  try {
    checkFacts(segment, { path, ...facts });
    if (await hashLines(segment, throttle) !== linesSha256) {
      throw new SegmentError(`${path}: reads back as other lines than were sealed`);
    }
  } finally {
    await segment.close();
  }
}

async function hashLines(segment: Segment, throttle: () => void): Promise<string> {
  const hash = createHash("sha256");
  const index = new SegmentIndexCheck(segment, { keys: true });
  for (let number = 0; number < segment.rowGroups.length; number++) {
    const columns = {} as Record<ColumnName, ColumnValues>;
    for (const name of COLUMN_NAMES) {
      Object.assign(columns, await segment.readColumns(number, [name]));
    }
    hash.update(segment.assemble(columns));
    const runs = batchRuns(columns, segment.rowGroups[number]!.rows);
    await index.checkRowGroup(number, columns, runs);
    throttle();
  }
  await index.finish();
  return hash.digest("hex");
}
