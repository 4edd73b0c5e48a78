/** Reads of a file that must give all the bytes that are asked for. */
import { Buffer } from "node:buffer";
import type { StorageFile } from "../storage/storage.ts";
import type { DecodeMemory } from "./decode_memory.ts";
import { SegmentError } from "./segment_error.ts";

/**
 * Reads bytes [start, end) of a file. @param memory where to; new when left out.
 * @throws {SegmentError} when the file ends before.
 */
export async function readRange(
  file: StorageFile,
  start: number,
  end: number,
  memory?: DecodeMemory,
): Promise<Buffer> {
  const bytes = memory?.take(end - start) ?? Buffer.allocUnsafeSlow(end - start);
  const readBytes = await file.read(bytes, start);
  if (readBytes === bytes.length) return bytes;
  throw new SegmentError(`the file ends at byte ${start + readBytes}, before ${end}`);
}
