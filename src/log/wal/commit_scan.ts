/**
 * Reads a tail or pending file commit by commit and checks each frame. Parses no event and hashes
 * none: one hash over each commit.
 */
import type { Buffer } from "node:buffer";
import { sha256Hex } from "../../event/hash.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../limits.ts";
import {
  type Commit,
  CommitHasher,
  type CommitHeader,
  decodeCommitHeader,
  HEADER_PREFIX,
  parseCommitHeader,
  SUFFIX_LENGTH,
} from "./commit_frame.ts";
import { viewOf } from "../line/line_bytes.ts";
import { PlainHeaderReader } from "./plain_header.ts";
import { SequentialReader } from "../storage/sequential_reader.ts";
import type { StorageFile } from "../storage/storage.ts";

const LF = 0x0a;
const MISMATCH = "the commit does not match its sha256";

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
    const isRight = visitAtHand(reader, visitor);
    const validBytes = reader.offset;
    if (!isRight) return { validBytes, fault: MISMATCH };
    if (validBytes === sizeBytes) return { validBytes, fault: null };
    const header = await readHeader(reader);
    if (header === null) return { validBytes, fault: "no commit header" };
    const bodyEnd = reader.offset + header.commit.bytes;
    if (bodyEnd > sizeBytes) {
      return { validBytes, fault: `the commit ends at ${bodyEnd}, the file at ${sizeBytes}` };
    }
    if (!(await bodyMatches(reader, header, visitor))) return { validBytes, fault: MISMATCH };
    visitor.commit(header.commit, validBytes, bodyEnd);
  }
}

/**
 * Visits the commits that lie whole in the reader's memory, without a promise for any: a tail of
 * single events has a hundred thousand. Stops before the first that does not, or has no header.
 * False when it came upon one that does not match its hash: what is at hand then is no more what
 * the file has.
 */
function visitAtHand(reader: SequentialReader, visitor: CommitVisitor): boolean {
  const { atHand, offset } = reader;
  const headers = new PlainHeaderReader(atHand);
  let isRight = true;
  let start = 0;
  for (;;) {
    const lineEnd = atHand.indexOf(LF, start);
    if (lineEnd < 0 || lineEnd - start > COMMIT_HEADER_BYTES_MAX) break;
    const header = headers.read(start, lineEnd) ??
      parseCommitHeader(atHand.subarray(start, lineEnd));
    if (header === null) break;
    const bodyStart = lineEnd + 1;
    const end = bodyStart + header.commit.bytes;
    if (end > atHand.length) break;
    const hashed = hashedBytes(atHand, start, lineEnd, end);
    isRight = atHand[end - 1] === LF && sha256Hex(hashed) === header.sha256;
    if (!isRight) break;
    visitor.lines?.(viewOf(atHand, bodyStart, end), offset + bodyStart);
    visitor.commit(header.commit, offset + start, offset + end);
    start = end;
  }
  reader.skip(start);
  return isRight;
}

/**
 * What the hash of a commit covers, as one piece: its object is moved to where its line ends, over
 * the hash. That costs less than a copy of all.
 */
function hashedBytes(bytes: Buffer, start: number, lineEnd: number, end: number): Uint8Array {
  const commitStart = start + HEADER_PREFIX.length;
  const commitEnd = lineEnd - SUFFIX_LENGTH;
  bytes.copyWithin(commitStart + SUFFIX_LENGTH, commitStart, commitEnd);
  return viewOf(bytes, commitStart + SUFFIX_LENGTH, end);
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
