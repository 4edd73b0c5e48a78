/**
 * A tail or pending file that is open and known to be right up to `endBytes`: what readers read,
 * and for the tail what the writer appends to. Only commits that are durable are ever taken in.
 *
 * It is one object from the first commit of a tail until nobody reads its events any more. A tail
 * becomes a pending file, that becomes segments, and those who read it go on there.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import type { Commit } from "./commit_frame.ts";
import { CommitReader } from "./commit_reader.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { SharedFile } from "../storage/shared_file.ts";
import type { LogFile } from "../read/snapshot.ts";
import { SparseIndex } from "./sparse_index.ts";
import type { StorageFile } from "../storage/storage.ts";

export class CommitFile {
  readonly index: SparseIndex = new SparseIndex();
  /** All bytes before are durable commits. */
  endBytes = 0;
  /** Where the last commit starts; 0 when there is none. */
  lastCommitOffset = 0;
  firstEventId: string | null = null;
  lastEventId: string | null = null;
  /** Chain head after the last commit; null when there is none. */
  head: string | null = null;
  /** Whether the last commit is the empty one of a clean shutdown. */
  endsClean = false;
  #path: string;
  #shared: SharedFile;
  #sealedIn: readonly LogFile[] | null = null;

  constructor(path: string, file: StorageFile) {
    this.#path = path;
    this.#shared = new SharedFile(file);
  }

  get path(): string {
    return this.#path;
  }

  get file(): StorageFile {
    return this.#shared.file;
  }

  /** The segments that its events are read from; null while that is the file. */
  get sealedIn(): readonly LogFile[] | null {
    return this.#sealedIn;
  }

  /** As `StorageFile.read()`; not once it is sealed. */
  read(into: Uint8Array, position: number): Promise<number> {
    return this.#shared.read(into, position);
  }

  /** The file has another name, and `file` has it open. Returns when the one before is closed. */
  moveTo(path: string, file: StorageFile): Promise<void> {
    const before = this.#shared;
    this.#path = path;
    this.#shared = new SharedFile(file);
    return before.close();
  }

  /** From now on its events are read from these segments. */
  retire(segments: readonly LogFile[]): void {
    assert(this.#sealedIn === null, "a file is retired once");
    this.#sealedIn = segments;
  }

  /** Returns when it is closed, once the reads that have begun are over; none begins any more. */
  close(): Promise<void> {
    return this.#shared.close();
  }

  /**
   * Takes in the next durable commit, which ends at `endBytes`.
   * @param lines its event lines, in one or more pieces of whole lines.
   */
  add(commit: Commit, lines: readonly Buffer[], endBytes: number): void {
    let offset = endBytes - commit.bytes;
    assert(offset > this.endBytes, "a commit starts where the one before ends");
    for (const piece of lines) {
      this.index.addLines(piece, offset);
      offset += piece.length;
    }
    assert(offset === endBytes, "a commit ends with its lines");
    this.firstEventId ??= commit.batches[0]?.first_event_id ?? null;
    this.lastEventId = commit.batches.at(-1)?.last_event_id ?? this.lastEventId;
    this.head = commit.head;
    this.endsClean = commit.batches.length === 0;
    this.lastCommitOffset = this.endBytes;
    this.endBytes = endBytes;
  }
}

/**
 * Takes in the right commits from the start of a file. Returns why the first that is not right is
 * not; null when all are.
 * @param onCommit told of each commit first. Throws when it cannot follow those before.
 */
export async function loadCommits(
  target: CommitFile,
  sizeBytes: number,
  onCommit: (commit: Commit) => void,
): Promise<string | null> {
  const reader = new CommitReader(target.file, 0, sizeBytes);
  for (let next = await reader.next(); next !== null; next = await reader.next()) {
    onCommit(next.commit);
    target.add(next.commit, [next.lines], next.endBytes);
  }
  return reader.fault;
}

/** What is said of a file whose commit after the last one taken in is not right. */
export function corruptAt(file: CommitFile, fault: string): CorruptLogError {
  const after = file.lastEventId === null ? "" : `, after event ${file.lastEventId}`;
  return new CorruptLogError(
    `${file.path}: corrupt at byte ${file.endBytes}${after}: ${fault}`,
  );
}
