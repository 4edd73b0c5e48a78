/**
 * An open tail or pending file, valid up to `endBytes`. Readers read it; the writer appends to the
 * tail. Only durable commits are added.
 *
 * One object represents a tail from its first commit until the pending file that it becomes has
 * been sealed and is no longer read.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { nextHead } from "../../event/chain.ts";
import { isSha256Hex } from "../../event/hash.ts";
import { BACKLOG_BYTES_PER_INDEX_BYTE } from "../../limits.ts";
import { sumOf } from "../../sum.ts";
import { LF } from "../line/line_bytes.ts";
import { StoredEvent } from "../line/stored_event.ts";
import { lineEventId, lineMembers } from "../line/stored_line.ts";
import { BatchIndex, type StreamGrowth } from "./batch_index.ts";
import type { BatchEntry, Commit } from "./commit_frame.ts";
import { type CommitsEnd, readToEnd } from "./remnant.ts";
import { CorruptLogError } from "../storage/errors.ts";
import type { SealedFile } from "../read/snapshot.ts";
import { SparseIndex } from "./sparse_index.ts";
import type { StorageFile } from "../storage/storage.ts";

export class CommitFile {
  path: string;
  file: StorageFile;
  readonly index: SparseIndex = new SparseIndex();
  /** Empty once the file is sealed. */
  batches: BatchIndex = new BatchIndex();
  /** End of the durable commits. */
  endBytes = 0;
  /** Start of the last commit; 0 if there is none. */
  lastCommitOffset = 0;
  events = 0;
  firstEventId: string | null = null;
  lastEventId: string | null = null;
  /** Chain head after the last commit; null if there is none. */
  head: string | null = null;
  /** Whether the last commit is a clean-shutdown marker. */
  endsClean = false;
  /** `endBytes` at the last call of `isOverwritten()`. */
  #seenBytes = 0;
  /** The segments that replace the file for readers; null until it is sealed. */
  sealedIn: readonly SealedFile[] | null = null;

  constructor(path: string, file: StorageFile) {
    this.path = path;
    this.file = file;
  }

  /** The file's share of the backlog, which bounds both its size and that of its indexes. */
  get backlogBytes(): number {
    const indexBytes = this.batches.sizeBytes + this.index.sizeBytes;
    return Math.max(this.endBytes, indexBytes * BACKLOG_BYTES_PER_INDEX_BYTE);
  }

  /** Whether another process has truncated the file, as `cp` does, to below its last `endBytes`. */
  async isOverwritten(): Promise<boolean> {
    const position = this.#seenBytes - 1;
    this.#seenBytes = this.endBytes;
    if (position < 0) return false;
    // A commit ends with LF. Its place is beyond the end of the file, or a hole before new commits.
    const byte = new Uint8Array(1);
    try {
      await this.file.read(byte, position);
    } catch {
      return false;
    }
    return byte[0] !== LF;
  }

  /**
   * Adds the next durable commit.
   * @param frame the commit's bytes in the file.
   * @param growth the events that the commit adds to each stream.
   * @throws {CorruptLogError} if the file already contains one of its batches.
   */
  add(commit: Commit, frame: Buffer, growth: Iterable<StreamGrowth>): void {
    assert(frame.length > commit.bytes, "a commit must start with its header");
    this.index.add(frame, frame.length - commit.bytes);
    for (const entry of commit.batches) this.batches.add(entry);
    this.events += sumOf(commit.batches, ({ events }) => events);
    for (const streamGrowth of growth) this.batches.grow(streamGrowth);
    this.firstEventId ??= commit.batches[0]?.first_event_id ?? null;
    this.lastEventId = commit.batches.at(-1)?.last_event_id ?? this.lastEventId;
    this.head = commit.head;
    this.endsClean = commit.batches.length === 0;
    this.lastCommitOffset = this.endBytes;
    this.endBytes += frame.length;
  }
}

/**
 * Loads the valid commits of a file. Returns what follows them, as `readToEnd()` does.
 * @param previousHead chain head at the end of the previous file, which the first commit continues.
 * @param onBatch called before a batch is added; throws if it cannot follow the previous ones.
 * @throws {CorruptLogError} if a valid commit cannot follow the previous ones.
 */
export async function loadCommits(
  target: CommitFile,
  sizeBytes: number,
  previousHead: string,
  onBatch: (entry: BatchEntry) => void,
): Promise<CommitsEnd> {
  return await readToEnd(target.file, sizeBytes, ({ commit, frame, lines }) => {
    for (const entry of commit.batches) onBatch(entry);
    if (target.head === null && headAfter(lines, previousHead) !== commit.head) {
      throw corruptAt(target, "the chain does not continue; the file before this one is missing");
    }
    try {
      target.add(commit, frame, growthOf(lines));
    } catch (error) {
      if (!(error instanceof CorruptLogError)) throw error;
      throw corruptAt(target, error.message);
    }
  });
}

/** Returns the chain head after these events; null if one is malformed. */
function headAfter(lines: Buffer, previousHead: string): string | null {
  let head = previousHead;
  const event = new StoredEvent();
  for (let at = 0; at < lines.length;) {
    at = event.takeLine(lines, at);
    if (at === 0 || !isSha256Hex(event.eventHash)) return null;
    head = nextHead(head, event.eventHash);
  }
  return head;
}

export function* growthOf(lines: Buffer): Generator<StreamGrowth, void> {
  for (let start = 0; start < lines.length; start = lines.indexOf(LF, start) + 1) {
    const [source, stream] = lineMembers(lines, start);
    yield { source, stream, events: 1, lastEventId: lineEventId(lines, start) };
  }
}

/** Creates the error for a file that is invalid after its last added commit. */
export function corruptAt(file: CommitFile, fault: string): CorruptLogError {
  const after = file.lastEventId === null ? "" : `, after event ${file.lastEventId}`;
  return new CorruptLogError(
    `${file.path}: corrupt at byte ${file.endBytes}${after}: ${fault}`,
  );
}
