/**
 * Distinguishes the remnant of a torn last commit from corruption. A commit is written only after
 * the previous one is synced, so invalid bytes are a remnant only if they can be part of a single
 * commit: no valid commit follows, no other commit begins in them, and they fit in one commit.
 */
import { Buffer } from "node:buffer";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../limits.ts";
import { closesAsHeader, HEADER_PREFIX, SUFFIX_LENGTH } from "./commit_frame.ts";
import { readCommits, type WholeCommit } from "./commit_reader.ts";
import type { StorageFile } from "../storage/storage.ts";
import { LF } from "../line/line_bytes.ts";

const CHUNK_BYTES = 1024 * 1024;
/** Marks the start of a commit. No event line begins like this or contains another LF. */
const COMMIT_START = Buffer.concat([Buffer.of(LF), HEADER_PREFIX]);
/** Chunks overlap, so that the start or end of a header is never split across two chunks. */
const OVERLAP_BYTES = Math.max(SUFFIX_LENGTH, COMMIT_START.length - 1);

/** The end of the valid commits in a file. */
export interface CommitsEnd {
  endBytes: number;
  /** Why the bytes that follow are not a commit; null if there are none. */
  fault: string | null;
  /** Why they cannot be a remnant either; null if they can. */
  corruption: string | null;
}

/**
 * Reads the commits in [0, sizeBytes) of a tail or pending file.
 * @param use receives each commit, which is valid until it returns, and its start.
 */
export async function readToEnd(
  file: StorageFile,
  sizeBytes: number,
  use: (commit: WholeCommit, start: number) => void,
): Promise<CommitsEnd> {
  for (let startBytes = 0, isRetry = false;; isRetry = true) {
    const commits = readCommits(file, startBytes, sizeBytes);
    let next = await commits.next();
    for (; next.done !== true; next = await commits.next()) {
      use(next.value, startBytes);
      startBytes = next.value.endBytes;
    }
    const fault = next.value;
    const corruption = fault && await remnantFault(file, sizeBytes, startBytes);
    if (corruption === null || isRetry) return { endBytes: startBytes, fault, corruption };
    // While this commit was being read, a writer may have discarded it and written another.
  }
}

/** Returns why the invalid bytes starting at `from` cannot be a remnant; null if they can. */
export async function remnantFault(
  file: StorageFile,
  sizeBytes: number,
  from: number,
): Promise<string | null> {
  if (sizeBytes - from > COMMIT_HEADER_BYTES_MAX + COMMIT_BODY_BYTES_MAX) {
    return `${sizeBytes - from} bytes follow, more than a single commit can contain`;
  }
  const chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  for (let offset = from; offset < sizeBytes; offset += CHUNK_BYTES - OVERLAP_BYTES) {
    // A writer may since have appended past `sizeBytes`.
    const readBytes = Math.min(await file.read(chunk, offset), sizeBytes - offset);
    const bytes = chunk.subarray(0, readBytes);
    const start = bytes.indexOf(COMMIT_START);
    if (start >= 0) return `another commit begins at byte ${offset + start + 1}`;
    for (let end = bytes.indexOf(LF); end >= 0; end = bytes.indexOf(LF, end + 1)) {
      if (!closesAsHeader(bytes, end)) continue;
      const commit = await commitOfLine(file, sizeBytes, from, offset + end);
      if (commit !== null) return `a valid commit follows at byte ${commit}`;
    }
    if (readBytes < CHUNK_BYTES) break;
  }
  return null;
}

/**
 * Returns the offset of the valid commit after `from` whose header line ends at `lineEnd`; null if
 * there is none.
 *
 * A header has a suffix that no event line has, so client input cannot forge one. The start of a
 * line is unreliable, since the preceding LF may be damaged.
 */
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
  // Quotes inside a header are escaped, so the prefix occurs only at the header's start.
  const start = region.lastIndexOf(HEADER_PREFIX);
  if (start < 0) return null;
  const offset = regionOffset + start;
  const { done } = await readCommits(file, offset, sizeBytes).next();
  return done ? null : offset;
}
