/** Reads a new segment back from the disk: its lines, indexes and statistics must be right. */
import { createHash } from "node:crypto";
import { SegmentError } from "../parquet/segment_error.ts";
import { openChecked, SegmentRowsCheck } from "../segment/segment_check.ts";
import type { WrittenSegment } from "../segment/segment_writer.ts";
import type { Storage } from "../storage/storage.ts";

/**
 * @param throttle called after each row group; may wait.
 * @throws {SegmentError} the file is not what was written, or holds other lines than the tail.
 */
export async function readBack(
  storage: Storage,
  path: string,
  { facts, linesSha256 }: WrittenSegment,
  throttle: () => void = () => {},
): Promise<void> {
  const segment = await openChecked(storage, { path, ...facts });
  try {
    const check = new SegmentRowsCheck(segment, { full: true });
    const hash = createHash("sha256");
    for await (const { lines } of check.rowGroups()) {
      hash.update(lines);
      throttle();
    }
    await check.finish();
    if (hash.digest("hex") !== linesSha256) {
      throw new SegmentError(`${path}: reads back as other lines than were sealed`);
    }
  } finally {
    await segment.close();
  }
}
