/**
 * Reads a tail or pending file commit by commit and checks each frame. Parses no event and hashes
 * none: one hash over each commit.
 */
import { Buffer } from "node:buffer";
import { sha256Hex } from "../event/hash.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../limits.ts";
import {
  type Commit,
  CommitHasher,
  type CommitHeader,
  decodeCommitHeader,
} from "./commit_frame.ts";
import { SequentialReader } from "./sequential_reader.ts";
import type { StorageFile } from "./storage.ts";

const LF = 0x0a;

/** Told of what a scan finds, in the order of the file. */
export interface CommitVisitor {
  /** A commit whose frame is right, from its header line at `offset` up to `endOffset`. */
  commit(commit: Commit, offset: number, endOffset: number): void;
  /** A piece of the event lines of the commit told next, before its frame is known to be right. */
  lines?(piece: Uint8Array, offset: number): void;
}

export interface ScanResult {
  /** Where the last right commit ends: all before it is whole. */
  validBytes: number;
  /** Why the scan stopped before the end of the file; null when it is whole. */
  fault: string | null;
}

/** Visits the commits of a file from its start to the first that is not right. */
export async function scanCommits(
  file: StorageFile,
  sizeBytes: number,
  visitor: CommitVisitor,
): Promise<ScanResult> {
  const reader = new SequentialReader(file, 0, sizeBytes);
  for (;;) {
    visitAtHand(reader, visitor);
    const validBytes = reader.offset;
    if (validBytes === sizeBytes) return { validBytes, fault: null };
    const header = await readHeader(reader);
    if (header === null) return { validBytes, fault: "no commit header" };
    const bodyEnd = reader.offset + header.commit.bytes;
    if (bodyEnd > sizeBytes) {
      return { validBytes, fault: `the commit ends at ${bodyEnd}, the file at ${sizeBytes}` };
    }
    if (!(await bodyMatches(reader, header, visitor))) {
      return { validBytes, fault: "the commit does not match its sha256" };
    }
    visitor.commit(header.commit, validBytes, bodyEnd);
  }
}

/** Lines up to this size are hashed at once, which for a small commit costs half of an object. */
const SMALL_BODY_BYTES = 4096;

/**
 * Visits the right commits that lie whole in the reader's memory, without a promise for any: a tail
 * of single events has a hundred thousand. Stops before the first that does not, or is not right.
 */
function visitAtHand(reader: SequentialReader, visitor: CommitVisitor): void {
  for (;;) {
    const { atHand, offset } = reader;
    const lineEnd = atHand.indexOf(LF);
    if (lineEnd < 0 || lineEnd > COMMIT_HEADER_BYTES_MAX) return;
    const header = decodeCommitHeader(atHand.subarray(0, lineEnd));
    if (header === null) return;
    const bodyStart = lineEnd + 1;
    const end = bodyStart + header.commit.bytes;
    if (end > atHand.length) return;
    const body = atHand.subarray(bodyStart, end);
    if (!frameMatches(header, body)) return;
    visitor.lines?.(body, offset + bodyStart);
    visitor.commit(header.commit, offset, offset + end);
    reader.skip(end);
  }
}

/** Whether a header and the lines that follow it are what was written. */
function frameMatches(header: CommitHeader, body: Uint8Array): boolean {
  if (body.at(-1) !== LF && body.length > 0) return false;
  if (body.length > SMALL_BODY_BYTES) {
    const hasher = new CommitHasher(header);
    hasher.update(body);
    return hasher.matches();
  }
  const { commitBytes, sha256 } = header;
  const bodyStart = commitBytes.length + 1;
  const hashed = Buffer.allocUnsafe(bodyStart + body.length);
  hashed.set(commitBytes);
  hashed[bodyStart - 1] = LF;
  hashed.set(body, bodyStart);
  return sha256Hex(hashed) === sha256;
}

/** The next line as a commit header; null when it is none that a reader accepts. */
export async function readHeader(reader: SequentialReader): Promise<CommitHeader | null> {
  const line = await reader.readLine(COMMIT_HEADER_BYTES_MAX);
  if (line === null) return null;
  const header = decodeCommitHeader(line);
  return header === null || header.commit.bytes > COMMIT_BODY_BYTES_MAX ? null : header;
}

/**
 * Reads the event lines that follow a header and checks the frame. To be called before anything
 * else is read: the header's bytes lie in the reader's buffer.
 */
export async function bodyMatches(
  reader: SequentialReader,
  header: CommitHeader,
  visitor: Pick<CommitVisitor, "lines">,
): Promise<boolean> {
  const hasher = new CommitHasher(header);
  let remainingBytes = header.commit.bytes;
  let lastByte = LF;
  while (remainingBytes > 0) {
    const offset = reader.offset;
    const piece = await reader.readSome(remainingBytes);
    if (piece.length === 0) return false;
    hasher.update(piece);
    visitor.lines?.(piece, offset);
    lastByte = piece[piece.length - 1]!;
    remainingBytes -= piece.length;
  }
  return hasher.matches() && lastByte === LF;
}
