/**
 * Reads a tail or pending file commit by commit and checks the hash of each frame, without parsing
 * events. Memory is bounded by the largest commit.
 */
import { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { freeOwnMemory } from "../../free_memory.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../limits.ts";
import type { StorageFile } from "../storage/storage.ts";
import { type Commit, hashFrame, parseCommitHeader } from "./commit_frame.ts";
import { LF } from "../line/line_bytes.ts";

const CHUNK_BYTES = 1024 * 1024;

/** A commit with a valid frame. */
export interface WholeCommit {
  commit: Commit;
  /** The commit's bytes, valid until the next call. */
  frame: Buffer;
  /** The event lines, each with its LF; a view of `frame`. */
  lines: Buffer;
  /** End of the commit in the file. */
  endBytes: number;
}

/**
 * Yields the commits in [startBytes, sizeBytes) of a file; a commit starts at `startBytes`.
 * @returns why the bytes after the last commit are not a valid one; null if there are none.
 */
export async function* readCommits(
  file: StorageFile,
  startBytes: number,
  sizeBytes: number,
): AsyncGenerator<WholeCommit, string | null> {
  assert(startBytes <= sizeBytes, "a range must not end before it starts");
  // Unread bytes are buffer[start, filled), and are at `position` in the file.
  let buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let [start, filled, position] = [0, 0, startBytes];

  /** Buffers at least `wantedBytes`; returns false if the range or the file ends first. */
  const fill = async (wantedBytes: number): Promise<boolean> => {
    const unread = buffer.subarray(start, filled);
    if (unread.length >= wantedBytes) return true;
    const former = buffer;
    if (wantedBytes > buffer.length) buffer = Buffer.allocUnsafeSlow(wantedBytes + CHUNK_BYTES);
    buffer.set(unread);
    if (buffer !== former) freeOwnMemory(former);
    const into = buffer.subarray(unread.length, sizeBytes - position);
    start = 0;
    filled = unread.length + await file.read(into, position + unread.length);
    return filled >= wantedBytes;
  };

  /** Returns the length of the header line, including its LF; 0 if none ends within the limit. */
  const findHeader = async (): Promise<number> => {
    for (let searchedBytes = 0; searchedBytes <= COMMIT_HEADER_BYTES_MAX;) {
      const lineBytes = buffer.subarray(start, filled).indexOf(LF, searchedBytes) + 1;
      if (lineBytes > 0) return lineBytes <= COMMIT_HEADER_BYTES_MAX ? lineBytes : 0;
      searchedBytes = filled - start;
      if (!(await fill(searchedBytes + 1))) break;
    }
    return 0;
  };

  while (position < sizeBytes) {
    const headerBytes = await findHeader();
    const header = parseCommitHeader(buffer, start, start + headerBytes - 1);
    if (header === null || header.commit.bytes > COMMIT_BODY_BYTES_MAX) return "no commit header";
    const { commit, sha256 } = header;
    const frameBytes = headerBytes + commit.bytes;
    const endBytes = position + frameBytes;
    if (endBytes > sizeBytes) {
      return `the commit ends at byte ${endBytes}, but the file ends at byte ${sizeBytes}`;
    }
    const isWhole = await fill(frameBytes);
    const frame = buffer.subarray(start, start + frameBytes);
    const endsLine = isWhole && frame[frameBytes - 1] === LF;
    if (!endsLine || hashFrame(frame, headerBytes - 1) !== sha256) {
      // What is there of a large commit is read again, to tell whether it is a remnant.
      freeOwnMemory(buffer);
      return "the commit does not match its sha256";
    }
    start += frameBytes;
    position = endBytes;
    yield { commit, frame, lines: frame.subarray(headerBytes), endBytes };
  }
  freeOwnMemory(buffer);
  return null;
}
