/**
 * The frame of one commit in a tail or pending file: what one fsync made durable, as one header
 * line and the stored lines of its events. Writer, recovery and verify share this file.
 * docs/format.md:
 *
 *   {"commit":<commit>,"sha256":"<hex>"}\n
 *   <bytes of event lines>
 *
 * The hash covers the bytes of <commit>, one LF, and the event lines.
 */
import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import { isEventId } from "../../event/event_id.ts";
import { isSha256Hex } from "../../event/hash.ts";
import { PlainHeaderReader } from "./plain_header.ts";

/** One batch of a commit; members and their order as in the file. */
export interface BatchEntry {
  batch_digest: string;
  batch_id: string;
  /** Number of events. */
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

/** A header line taken apart. */
export interface CommitHeader {
  commit: Commit;
  /** The bytes of the commit object, as hashed. */
  commitBytes: Uint8Array;
  sha256: string;
}

export const HEADER_PREFIX: Uint8Array = Buffer.from('{"commit":');
const SUFFIX_PREFIX = ',"sha256":"';
/** `,"sha256":"` + 64 hex digits + `"}` */
export const SUFFIX_LENGTH: number = SUFFIX_PREFIX.length + 64 + 2;
const LF = Buffer.from("\n");

/** Second byte after `{"`: `c` starts a header line, `e` an event line. */
const KIND_OFFSET = 2;
const HEADER_KIND = 0x63;

/** Whether a line that ends right before `end` closes as a header does. Event lines never do. */
export function closesAsHeader(bytes: Buffer, end: number): boolean {
  const suffixStart = end - SUFFIX_LENGTH;
  return suffixStart >= 0 &&
    bytes.toString("latin1", suffixStart, suffixStart + SUFFIX_PREFIX.length) === SUFFIX_PREFIX;
}

/** Whether the line that starts at `offset` is a header (and not an event). */
export function isHeaderLine(bytes: Uint8Array, offset: number): boolean {
  return bytes[offset + KIND_OFFSET] === HEADER_KIND;
}

/** The header line, LF included, for a commit over its event lines, in one or more pieces. */
export function encodeCommitHeader(commit: Commit, lines: readonly Uint8Array[]): Buffer {
  const commitText = JSON.stringify(
    {
      batches: commit.batches.map(canonicalEntry),
      bytes: commit.bytes,
      head: commit.head,
    } satisfies Commit,
  );
  const hash = createHash("sha256").update(commitText).update(LF);
  for (const piece of lines) hash.update(piece);
  const sha256 = hash.digest("hex");
  return Buffer.from(`{"commit":${commitText}${SUFFIX_PREFIX}${sha256}"}\n`);
}

/** Members in RFC 8785 order, so that JSON.stringify gives the canonical text. */
function canonicalEntry(entry: BatchEntry): BatchEntry {
  return {
    batch_digest: entry.batch_digest,
    batch_id: entry.batch_id,
    events: entry.events,
    first_event_id: entry.first_event_id,
    last_event_id: entry.last_event_id,
    source: entry.source,
  };
}

/**
 * Takes a header line (without its LF) apart; null when it is none. The hash is not checked here.
 */
export function decodeCommitHeader(line: Uint8Array): CommitHeader | null {
  const buffer = Buffer.from(line.buffer, line.byteOffset, line.byteLength);
  const plain = new PlainHeaderReader(buffer).read(0, buffer.length);
  return plain === null
    ? parseCommitHeader(buffer)
    : { ...plain, commitBytes: commitBytesOf(buffer) };
}

/** As `decodeCommitHeader()`, for any spelling. */
export function parseCommitHeader(line: Buffer): CommitHeader | null {
  const commitEnd = line.length - SUFFIX_LENGTH;
  if (commitEnd <= HEADER_PREFIX.length) return null;
  if (line.compare(HEADER_PREFIX, 0, HEADER_PREFIX.length, 0, HEADER_PREFIX.length) !== 0) {
    return null;
  }
  const suffix = line.toString("latin1", commitEnd);
  const sha256 = suffix.slice(SUFFIX_PREFIX.length, -2);
  if (!suffix.startsWith(SUFFIX_PREFIX) || !suffix.endsWith('"}') || !isSha256Hex(sha256)) {
    return null;
  }
  const commitBytes = commitBytesOf(line);
  const commit = parseCommit(commitBytes.toString());
  return commit === null ? null : { commit, commitBytes, sha256 };
}

function commitBytesOf(line: Buffer): Buffer {
  return line.subarray(HEADER_PREFIX.length, line.length - SUFFIX_LENGTH);
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
    isCount(entry.events, 1) && typeof entry.first_event_id === "string" &&
    typeof entry.last_event_id === "string" && isEventId(entry.first_event_id) &&
    isEventId(entry.last_event_id);
}

function isCount(value: unknown, min: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= min;
}

/** Checks a frame whose body comes in pieces. */
export class CommitHasher {
  readonly #hash: Hash;
  readonly #expected: string;

  constructor(header: CommitHeader) {
    this.#hash = createHash("sha256").update(header.commitBytes).update(LF);
    this.#expected = header.sha256;
  }

  update(piece: Uint8Array): void {
    this.#hash.update(piece);
  }

  /** Whether header and body are what was written. To be called once. */
  matches(): boolean {
    return this.#hash.digest("hex") === this.#expected;
  }
}
