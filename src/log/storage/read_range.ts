/** Reads ranges from files, and fails unless all requested bytes are read. */
import { Buffer } from "node:buffer";
import type { FileReader } from "./storage.ts";
import { SegmentError } from "./segment_error.ts";

/** Bytes [start, end) of a file. */
export interface FileRange {
  start: number;
  end: number;
}

/** Reads bytes [start, end) of a file. @throws {SegmentError} if the file ends before `end`. */
export async function readRange(file: FileReader, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(end - start);
  const readBytes = await file.read(bytes, start);
  if (readBytes === bytes.length) return bytes;
  throw new SegmentError(`the file ends at byte ${start + readBytes}, before byte ${end}`);
}
