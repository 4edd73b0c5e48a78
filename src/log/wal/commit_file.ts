/**
 * A tail or pending file that is open and known to be right up to `endBytes`: what readers read,
 * and for the tail what the writer appends to. Only commits that are durable are ever taken in.
 *
 * It is one object from the first commit of a tail until nobody reads its events any more. A tail
 * becomes a pending file, that becomes segments, and those who read it go on there.
 */
import { assert } from "../../assert.ts";
import type { Commit } from "./commit_frame.ts";
import { scanCommits } from "./commit_scan.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { SharedFile } from "../storage/shared_file.ts";
import type { LogFile } from "../read/snapshot.ts";
import { SparseIndex } from "./sparse_index.ts";
import type { StorageFile } from "../storage/storage.ts";

export class CommitFile {
  readonly index: SparseIndex = new SparseIndex();
  /** All bytes before are commits that segments cover: they are read from those. */
  startBytes = 0;
  /** All bytes before are commits that are in segments, whether or not those are read yet. */
  sealedBytes = 0;
  /** All bytes before are durable commits. */
  endBytes = 0;
  /** Where the last commit starts; 0 when there is none. */
  lastCommitOffset = 0;
  /** Covered or not, as in the name of a pending file. */
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

  /** From now on its events from `startBytes` on are read from these segments. */
  retire(segments: readonly LogFile[]): void {
    assert(this.#sealedIn === null, "a file is retired once");
    this.#sealedIn = segments;
  }

  /** Returns when it is closed, once the reads that have begun are over; none begins any more. */
  close(): Promise<void> {
    return this.#shared.close();
  }

  /** Takes in a durable commit that ends at `endBytes`; its lines have been staged in the index. */
  add(commit: Commit, offset: number, endBytes: number): void {
    assert(offset === this.endBytes, "a commit starts where the one before ends");
    const first = commit.batches[0]?.first_event_id;
    if (first !== undefined) {
      this.index.addCommit(offset, first);
      this.firstEventId ??= first;
      this.lastEventId = commit.batches.at(-1)!.last_event_id;
    }
    this.head = commit.head;
    this.endsClean = first === undefined;
    this.lastCommitOffset = offset;
    this.endBytes = endBytes;
  }
}

export interface LoadOptions {
  /** Last event that is in a segment; null while there is none. */
  sealedThrough: string | null;
  /** Told of every commit that no segment covers. Throws when it cannot follow those before. */
  onCommit: (commit: Commit) => void;
}

/**
 * Takes in the right commits from the start of a file. Returns why the first that is not right is
 * not; null when all are.
 */
export async function loadCommits(
  target: CommitFile,
  sizeBytes: number,
  { sealedThrough, onCommit }: LoadOptions,
): Promise<string | null> {
  const { validBytes, fault } = await scanCommits(target.file, sizeBytes, {
    lines: (piece, offset) => target.index.stageLines(piece, offset),
    commit: (commit, offset, endOffset) => {
      const covered = target.startBytes === offset && isCovered(commit, sealedThrough);
      if (!covered) onCommit(commit);
      target.add(commit, offset, endOffset);
      if (covered) target.startBytes = target.sealedBytes = endOffset;
    },
  });
  target.index.discardStaged();
  assert(validBytes === target.endBytes, "a scan ends where the commits taken in end");
  return fault;
}

/**
 * Whether the events of a commit are in segments, which end where a commit ends. An empty one has
 * none.
 */
export function isCovered({ batches }: Commit, sealedThrough: string | null): boolean {
  return sealedThrough !== null && (batches.at(-1)?.last_event_id ?? "") <= sealedThrough;
}

/** What is said of a file whose commit after the last one taken in is not right. */
export function corruptAt(file: CommitFile, fault: string): CorruptLogError {
  const after = file.lastEventId === null ? "" : `, after event ${file.lastEventId}`;
  return new CorruptLogError(
    `${file.path}: corrupt at byte ${file.endBytes}${after}: ${fault}`,
  );
}
