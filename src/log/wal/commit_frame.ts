/**
 * The frame of a commit in a tail or pending file: a header line, then the stored lines of its
 * events (docs/format.md):
 *
 *   {"commit":<commit>,"sha256":"<hex>"}\n
 *   <bytes of event lines>
 *
 * The hash covers the bytes of <commit>, an LF and the event lines.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { assert } from "../../assert.ts";
import { isEventId } from "../../event/event_id.ts";
import { isSha256Hex, sha256Hex } from "../../event/hash.ts";
import { COMMIT_BODY_BYTES_MAX, COMMIT_HEADER_BYTES_MAX } from "../../limits.ts";
import { sumOf } from "../../sum.ts";

/** A batch in a commit, with its members in file order. */
export interface BatchEntry {
  batch_digest: string;
  batch_id: string;
  events: number;
  first_event_id: string;
  last_event_id: string;
  source: string;
}

export interface Commit {
  batches: BatchEntry[];
  /** Length of the event lines. */
  bytes: number;
  /** History chain head after this commit, 64 lowercase hex digits. */
  head: string;
}

export const HEADER_PREFIX: Uint8Array = Buffer.from('{"commit":');
export const SUFFIX_PREFIX = ',"sha256":"';
/** `,"sha256":"` + 64 hex digits + `"}` */
export const SUFFIX_LENGTH: number = SUFFIX_PREFIX.length + 64 + 2;

/**
 * Encodes a commit: its header line, then its event lines, which are given in one or more pieces.
 * The members of the interfaces are in RFC 8785 order, so JSON.stringify is canonical.
 */
export function encodeCommit(
  { batches, head }: Pick<Commit, "batches" | "head">,
  lines: readonly Uint8Array[],
): { commit: Commit; frame: Buffer } {
  const commit: Commit = { batches, bytes: sumOf(lines, ({ length }) => length), head };
  const commitText = JSON.stringify(commit);
  const commitBytes = Buffer.byteLength(commitText);
  const headerBytes = HEADER_PREFIX.length + commitBytes + SUFFIX_LENGTH + 1;
  assert(commit.bytes <= COMMIT_BODY_BYTES_MAX, "commit lines must be within the limit");
  assert(headerBytes <= COMMIT_HEADER_BYTES_MAX, "a commit header must be within the limit");
  const frame = Buffer.allocUnsafe(headerBytes + commit.bytes);
  let end = headerBytes;
  for (const piece of lines) {
    frame.set(piece, end);
    end += piece.length;
  }
  // What the hash covers stands together first, and is hashed in one call.
  const hashedStart = headerBytes - 1 - commitBytes;
  frame.write(`${commitText}\n`, hashedStart);
  const sha256 = sha256Hex(frame.subarray(hashedStart));
  frame.write(`{"commit":${commitText}${SUFFIX_PREFIX}${sha256}"}\n`);
  return { commit, frame };
}

/**
 * Parses the header line [start, end) of `bytes`, without its LF; null if it is not a header.
 * `sha256` is the hash of the frame, as recorded there.
 */
export function parseCommitHeader(
  bytes: Buffer,
  start = 0,
  end: number = bytes.length,
): { commit: Commit; sha256: string } | null {
  const commitStart = start + HEADER_PREFIX.length;
  const commitEnd = end - SUFFIX_LENGTH;
  if (commitEnd <= commitStart) return null;
  if (bytes.compare(HEADER_PREFIX, 0, HEADER_PREFIX.length, start, commitStart) !== 0) return null;
  const suffix = bytes.toString("latin1", commitEnd, end);
  const sha256 = suffix.slice(SUFFIX_PREFIX.length, -2);
  if (!suffix.startsWith(SUFFIX_PREFIX) || !suffix.endsWith('"}') || !isSha256Hex(sha256)) {
    return null;
  }
  const commit = parseCommit(bytes.toString("utf8", commitStart, commitEnd));
  return commit === null ? null : { commit, sha256 };
}

/** Hashes a frame whose header line ends at `lineEnd`. */
export function hashFrame(bytes: Buffer, lineEnd: number): string {
  const commit = bytes.subarray(HEADER_PREFIX.length, lineEnd - SUFFIX_LENGTH);
  return createHash("sha256").update(commit).update(bytes.subarray(lineEnd)).digest("hex");
}

function parseCommit(text: string): Commit | null {
  let commit: Partial<Commit>;
  try {
    commit = JSON.parse(text);
  } catch {
    return null;
  }
  const valid = commit !== null && typeof commit === "object" && Array.isArray(commit.batches) &&
    isCount(commit.bytes, 0) && isSha256Hex(commit.head) &&
    commit.batches.every(isBatchEntry) && (commit.batches.length === 0) === (commit.bytes === 0);
  return valid ? commit as Commit : null;
}

function isBatchEntry(entry: Partial<BatchEntry> | null): boolean {
  return entry !== null && typeof entry === "object" &&
    typeof entry.source === "string" && typeof entry.batch_id === "string" &&
    isSha256Hex(entry.batch_digest) &&
    isCount(entry.events, 1) && isEventId(entry.first_event_id) && isEventId(entry.last_event_id);
}

function isCount(value: unknown, min: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min;
}
