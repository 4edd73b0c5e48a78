/**
 * Tells an unfinished last commit, which a crash may leave, from corruption, which it cannot. A
 * commit is written only after the fsync of the one before, so the bytes that are not right can
 * only be a remnant when they are of one commit: when no right one follows them, no other one
 * begins among them, and they are not more than a commit may have.
 */
import { Buffer } from "node:buffer";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../limits.ts";
import { closesAsHeader, HEADER_PREFIX, SUFFIX_LENGTH } from "./commit_frame.ts";
import { CommitReader } from "./commit_reader.ts";
import type { StorageFile } from "../storage/storage.ts";

const LF = 0x0a;
const CHUNK_BYTES = 1024 * 1024;
/** No event line begins so, and nothing that a client submits holds an LF as it is. */
const COMMIT_START = Buffer.concat([Buffer.of(LF), HEADER_PREFIX]);

/**
 * Why the bytes from `from` on, which are no right commit, cannot be the remnant of one; null when
 * they can.
 */
export async function remnantFault(
  file: StorageFile,
  sizeBytes: number,
  from: number,
): Promise<string | null> {
  if (sizeBytes - from > COMMIT_HEADER_BYTES_MAX + COMMIT_BODY_BYTES_MAX) {
    return `${sizeBytes - from} bytes follow, more than a commit may have`;
  }
  const rightOffset = await findCommitAfter(file, sizeBytes, from);
  if (rightOffset !== null) return `a right commit follows at ${rightOffset}`;
  const startOffset = await findCommitStart(file, sizeBytes, from);
  return startOffset === null ? null : `another commit begins at ${startOffset}`;
}

/** Offset of the first commit, right or not, that begins after `from`; null when there is none. */
async function findCommitStart(
  file: StorageFile,
  sizeBytes: number,
  from: number,
): Promise<number | null> {
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  for (let chunkOffset = from; chunkOffset < sizeBytes;) {
    // A writer may have gone on behind `sizeBytes` meanwhile.
    const readBytes = Math.min(await file.read(chunk, chunkOffset), sizeBytes - chunkOffset);
    const at = chunk.subarray(0, readBytes).indexOf(COMMIT_START);
    if (at >= 0) return chunkOffset + at + 1;
    if (readBytes < CHUNK_BYTES) return null;
    // One that the chunk cuts is seen whole in the next one.
    chunkOffset += readBytes - COMMIT_START.length + 1;
  }
  return null;
}

/**
 * Offset of a right commit that starts after `from`, wherever in the file; null when there is none.
 *
 * A header runs to the end of its line and closes as no event line does, so nothing a client
 * submits can look like one, and one pass over the ends of lines finds all candidates. The start of
 * a line cannot be relied on: the damage may be in the line end before.
 */
export async function findCommitAfter(
  file: StorageFile,
  sizeBytes: number,
  from: number,
): Promise<number | null> {
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let chunkOffset = from;
  while (chunkOffset < sizeBytes) {
    const readBytes = await file.read(chunk, chunkOffset);
    const bytes = chunk.subarray(0, readBytes);
    for (let end = bytes.indexOf(LF); end >= 0; end = bytes.indexOf(LF, end + 1)) {
      if (!closesAsHeader(bytes, end)) continue;
      const found = await commitOfLine(file, sizeBytes, from, chunkOffset + end);
      if (found !== null) return found;
    }
    // A header's end that the chunk cuts is seen whole in the next one.
    chunkOffset += Math.max(1, readBytes - SUFFIX_LENGTH);
    if (readBytes < CHUNK_BYTES) break;
  }
  return null;
}

/** The place of the right commit whose header's line ends at `lineEnd`; null when it is none. */
async function commitOfLine(
  file: StorageFile,
  sizeBytes: number,
  from: number,
  lineEnd: number,
): Promise<number | null> {
  const regionOffset = Math.max(from + 1, lineEnd - COMMIT_HEADER_BYTES_MAX);
  if (regionOffset >= lineEnd) return null;
  const region = Buffer.allocUnsafeSlow(lineEnd - regionOffset);
  await file.read(region, regionOffset);
  // Inside a header the quotes of this text would be escaped: only its start can look so.
  const start = region.lastIndexOf(HEADER_PREFIX);
  if (start < 0) return null;
  const offset = regionOffset + start;
  return await new CommitReader(file, offset, sizeBytes).next() === null ? null : offset;
}
