/**
 * The files that a log is made of, and how events move on from one to the next: the tail is
 * rotated, a rotated one is sealed, and readers go over to its segments. What a snapshot was given
 * stays readable through all of it.
 */
import { assert } from "../assert.ts";
import { CommitFile } from "./wal/commit_file.ts";
import { CommitFileView } from "./wal/commit_file_view.ts";
import { TAIL_FILE } from "./storage/file_names.ts";
import type { Manifest, SegmentEntry } from "./segment/manifest.ts";
import { RecentCommits } from "./wal/recent_commits.ts";
import type { RecoveredLog } from "./recovery.ts";
import { rotateTail } from "./wal/rotation.ts";
import { removePending, removeUnfinished, sealPending } from "./sealing/seal.ts";
import type { SealedHistory } from "./segment/sealed_history.ts";
import type { SegmentMaker } from "./sealing/segment_maker.ts";
import type { LogFile, LogSnapshot } from "./read/snapshot.ts";
import type { Storage } from "./storage/storage.ts";

export interface LogFilesOptions {
  storage: Storage;
  /** Milliseconds since 1970. */
  clockMs: () => number;
  recentBytesMax: number;
  /** Told of moves in the turn of the event loop in which readers come to see them. */
  listener: MoveListener;
}

export interface MoveListener {
  /** What is committed from now on is in a new file, a generation of its own. */
  rotated(): void;
  /** The oldest generation is in these segments now, the last ones of the sealed history. */
  sealedMore(segments: readonly SegmentEntry[]): void;
  /** A sentence for the operator. */
  report(line: string): void;
}

/** A pending file that has been sealed, and its segments. */
export interface SealedFile {
  file: CommitFile;
  segments: readonly SegmentEntry[];
}

export class LogFiles {
  readonly sealed: SealedHistory;
  readonly #options: LogFilesOptions;
  #manifest: Manifest;
  /** Rotated tails that readers read, from oldest to newest. */
  #pending: readonly CommitFile[];
  #tail: CommitFile;
  #recent: RecentCommits;
  #snapshot: LogSnapshot;

  constructor(options: LogFilesOptions, recovered: RecoveredLog) {
    this.#options = options;
    this.sealed = recovered.sealed;
    this.#manifest = recovered.manifest;
    this.#pending = recovered.pending;
    this.#tail = recovered.tail;
    this.#recent = new RecentCommits(options.recentBytesMax);
    this.#snapshot = this.#takeSnapshot();
  }

  /** What is durable, as of the last move or `refresh()`. */
  get snapshot(): LogSnapshot {
    return this.#snapshot;
  }

  get tail(): CommitFile {
    return this.#tail;
  }

  /** The newest commits of the tail. */
  get recent(): RecentCommits {
    return this.#recent;
  }

  /** The rotated tail that is to be sealed next; null when there is none. */
  get oldestPending(): CommitFile | null {
    return this.#pending[0] ?? null;
  }

  get pendingCount(): number {
    return this.#pending.length;
  }

  /** Size of the commits that are in no segment yet. */
  get unsealedBytes(): number {
    return this.#pending.reduce((sum, { endBytes }) => sum + endBytes, this.#tail.endBytes);
  }

  /** Has the snapshot show what the tail has taken in. */
  refresh(): void {
    this.#snapshot = this.#takeSnapshot();
  }

  /**
   * Rotates a tail with events. The new names are not durable before `syncNames()`.
   * @throws {RotationError}
   */
  async rotate(): Promise<void> {
    const { storage, listener } = this.#options;
    const old = this.#tail;
    const rotated = await rotateTail(storage, old);
    this.#recent.clear();
    this.#recent = new RecentCommits(this.#options.recentBytesMax);
    this.#tail = new CommitFile(TAIL_FILE, rotated.tail);
    this.#pending = [...this.#pending, old];
    const closed = old.moveTo(rotated.path, rotated.pending);
    this.refresh();
    listener.rotated();
    try {
      await closed;
    } catch (error) {
      // It costs a descriptor, and the rotation is complete.
      listener.report(`${TAIL_FILE}: rotated, but not closed: ${(error as Error).message}`);
    }
  }

  /** Seals the oldest pending file, and has readers go over to its segments. */
  async sealOldest(maker: SegmentMaker): Promise<SealedFile> {
    const pending = this.oldestPending;
    assert(pending !== null, "there is a file to be sealed");
    this.#manifest = await this.#seal(pending, maker);
    return this.#publish(pending);
  }

  async #seal(pending: CommitFile, maker: SegmentMaker): Promise<Manifest> {
    const { storage, clockMs } = this.#options;
    try {
      return await sealPending(pending, this.#manifest, { storage, clockMs, maker });
    } catch (error) {
      try {
        await removeUnfinished(storage);
      } catch (left) {
        const { message } = error as Error;
        const reason = (left as Error).message;
        throw new Error(`${message}; what it left could not be removed: ${reason}`, {
          cause: error,
        });
      }
      throw error;
    }
  }

  /** Closes a file that has been sealed, when nobody is reading it, and removes it. */
  async remove(sealed: CommitFile): Promise<void> {
    await sealed.close();
    await removePending(this.#options.storage, sealed.path);
  }

  /** To be called when nobody reads any more. */
  async close(): Promise<void> {
    for (const file of [...this.#pending, this.#tail]) await file.close();
    await this.sealed.close();
  }

  /** In one turn of the event loop: nobody sees an event twice, or not at all. */
  #publish(pending: CommitFile): SealedFile {
    const known = this.sealed.files.length;
    const segments = this.#manifest.segments.slice(known);
    this.sealed.add(segments);
    const views = this.sealed.files.slice(known);
    this.#pending = this.#pending.slice(1);
    pending.retire(views);
    this.refresh();
    this.#options.listener.sealedMore(segments);
    return { file: pending, segments };
  }

  #takeSnapshot(): LogSnapshot {
    const unsealed: LogFile[] = [];
    for (const file of [...this.#pending, this.#tail]) {
      const recent = file === this.#tail ? this.#recent : null;
      if (file.lastEventId !== null) unsealed.push(new CommitFileView(file, recent));
    }
    return new FilesSnapshot(this.sealed.files, unsealed);
  }
}

/**
 * Its list is made when it is first read: of ten thousand segments that is too much for a commit.
 */
class FilesSnapshot implements LogSnapshot {
  readonly frontier: string | null;
  readonly #sealed: readonly LogFile[];
  readonly #unsealed: readonly LogFile[];
  #files: readonly LogFile[] | null = null;

  constructor(sealed: readonly LogFile[], unsealed: readonly LogFile[]) {
    this.frontier = (unsealed.at(-1) ?? sealed.at(-1))?.lastEventId ?? null;
    this.#sealed = sealed;
    this.#unsealed = unsealed;
  }

  get files(): readonly LogFile[] {
    return this.#files ??= [...this.#sealed, ...this.#unsealed];
  }
}
