/** Reads ranges from files, and fails unless all requested bytes are read. */
import { Buffer } from "node:buffer";
import type { FileReader } from "../storage/storage.ts";
import { SegmentError } from "./segment_error.ts";

/** Bytes [start, end) of a file. */
export interface FileRange {
  start: number;
  end: number;
}

/** Maximum gap between ranges that share a read; a second read costs more than reading the gap. */
const READ_GAP_BYTES_MAX = 64 * 1024;

/** Reads bytes [start, end) of a file. @throws {SegmentError} if the file ends before `end`. */
export async function readRange(file: FileReader, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(end - start);
  const readBytes = await file.read(bytes, start);
  if (readBytes === bytes.length) return bytes;
  throw new SegmentError(`the file ends at byte ${start + readBytes}, before byte ${end}`);
}

/**
 * Reads several ranges, coalescing neighbors separated by at most READ_GAP_BYTES_MAX.
 * @throws {SegmentError} if the file ends before the last range does.
 */
export async function readRanges(
  file: FileReader,
  ranges: readonly FileRange[],
): Promise<Buffer[]> {
  const parts: Buffer[] = [];
  for (let first = 0; first < ranges.length;) {
    let next = first + 1;
    while (next < ranges.length && areClose(ranges[next - 1]!, ranges[next]!)) next += 1;
    const { start } = ranges[first]!;
    const bytes = await readRange(file, start, ranges[next - 1]!.end);
    for (const range of ranges.slice(first, next)) {
      parts.push(bytes.subarray(range.start - start, range.end - start));
    }
    first = next;
  }
  return parts;
}

function areClose(range: FileRange, next: FileRange): boolean {
  return next.start >= range.end && next.start - range.end <= READ_GAP_BYTES_MAX;
}
