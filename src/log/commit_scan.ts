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
  let validBytes = 0;
  while (validBytes < sizeBytes) {
    const header = await readHeader(reader);
    if (header === null) return { validBytes, fault: "no commit header" };
    const { commit } = header;
    const bodyEnd = reader.offset + commit.bytes;
    if (bodyEnd > sizeBytes) {
      return { validBytes, fault: `the commit ends at ${bodyEnd}, the file at ${sizeBytes}` };
    }
    if (!(await bodyMatches(reader, header, visitor))) {
      return { validBytes, fault: "the commit does not match its sha256" };
    }
    visitor.commit(commit, validBytes, bodyEnd);
    validBytes = bodyEnd;
  }
  return { validBytes, fault: null };
}

/** Lines up to this size are hashed at once, which for a small commit costs half of an object. */
const SMALL_BODY_BYTES = 4096;

async function smallMatches(
  reader: SequentialReader,
  { commit, commitBytes, sha256 }: CommitHeader,
  visitor: Pick<CommitVisitor, "lines">,
): Promise<boolean> {
  const bodyStart = commitBytes.length + 1;
  const hashed = Buffer.allocUnsafe(bodyStart + commit.bytes);
  hashed.set(commitBytes);
  hashed[bodyStart - 1] = LF;
  const { offset } = reader;
  const body = await reader.readWhole(commit.bytes);
  if (body === null) return false;
  visitor.lines?.(body, offset);
  hashed.set(body, bodyStart);
  return hashed.at(-1) === LF && sha256Hex(hashed) === sha256;
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
  if (header.commit.bytes <= SMALL_BODY_BYTES) return await smallMatches(reader, header, visitor);
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
