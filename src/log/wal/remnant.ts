/**
 * Distinguishes the remnant of a torn last commit from corruption. A commit is written only after
 * the previous one is synced, so invalid bytes are a remnant only if they can be part of a single
 * commit: no valid commit follows, no other commit begins in them, and they fit in one commit.
 */
import { Buffer } from "node:buffer";
import { freeOwnMemory } from "../../free_memory.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../limits.ts";
import { HEADER_PREFIX, SUFFIX_LENGTH, SUFFIX_PREFIX } from "./commit_frame.ts";
import { readCommits, type WholeCommit } from "./commit_reader.ts";
import type { StorageFile } from "../storage/storage.ts";
import { LF } from "../line/line_bytes.ts";

/** Marks the start of a commit. No event line begins like this or contains another LF. */
const COMMIT_START = Buffer.concat([Buffer.of(LF), HEADER_PREFIX]);

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

/**
 * Returns why the invalid bytes starting at `from` cannot be a remnant; null if they can.
 *
 * A header line ends with a suffix with which no event line ends, so client input cannot forge one.
 * The start of a line is unreliable, since the preceding LF may be damaged.
 */
export async function remnantFault(
  file: StorageFile,
  sizeBytes: number,
  from: number,
): Promise<string | null> {
  if (sizeBytes - from > COMMIT_HEADER_BYTES_MAX + COMMIT_BODY_BYTES_MAX) {
    return `${sizeBytes - from} bytes follow, more than a single commit can contain`;
  }
  const into = Buffer.allocUnsafeSlow(sizeBytes - from);
  const bytes = into.subarray(0, await file.read(into, from));
  const next = bytes.indexOf(COMMIT_START);
  if (next >= 0) return `another commit begins at byte ${from + next + 1}`;
  const suffixAfter = (at: number) => bytes.indexOf(SUFFIX_PREFIX, at);
  for (let suffix = suffixAfter(0); suffix >= 0; suffix = suffixAfter(suffix + 1)) {
    const end = suffix + SUFFIX_LENGTH;
    if (bytes[end] !== LF) continue;
    const regionStart = Math.max(1, end - COMMIT_HEADER_BYTES_MAX);
    // Quotes inside a header are escaped, so the prefix occurs only at the header's start.
    const start = bytes.subarray(regionStart, end).lastIndexOf(HEADER_PREFIX);
    if (start < 0) continue;
    const offset = from + regionStart + start;
    const { done } = await readCommits(file, offset, sizeBytes).next();
    if (!done) return `a valid commit follows at byte ${offset}`;
  }
  freeOwnMemory(into);
  return null;
}
