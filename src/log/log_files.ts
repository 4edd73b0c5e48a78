/**
 * The files of a log, and how events move from one to the next: the tail is rotated, a rotated tail
 * is sealed, and its readers switch to the segments. Every snapshot stays readable throughout.
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
import type { MakeSegment } from "./sealing/segment_maker.ts";
import type { LogFile, LogSnapshot } from "./read/snapshot.ts";
import type { Storage } from "./storage/storage.ts";

export interface LogFilesOptions {
  storage: Storage;
  /** Milliseconds since 1970. */
  clockMs: () => number;
  /** How much of the newest commits is kept in memory. */
  recentBytesMax: number;
  /** Called in the turn of the event loop in which readers first see a move. */
  listener: MoveListener;
}

export interface MoveListener {
  /** Later commits are in a new file, a generation of its own. */
  rotated(): void;
  /** The oldest generation is now in these segments, the last ones of the sealed history. */
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
  #snapshot: LogSnapshot;

  constructor(options: LogFilesOptions, recovered: RecoveredLog) {
    this.#options = options;
    this.sealed = recovered.sealed;
    this.#manifest = recovered.manifest;
    this.#pending = recovered.pending;
    this.#tail = recovered.tail;
    this.#tail.recent = new RecentCommits(options.recentBytesMax);
    this.#snapshot = this.#takeSnapshot();
  }

  /** What is durable, as of the last move or `refresh()`. */
  get snapshot(): LogSnapshot {
    return this.#snapshot;
  }

  get tail(): CommitFile {
    return this.#tail;
  }

  /** The rotated tail to seal next; null when there is none. */
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

  /** Updates the snapshot to the end of the tail. */
  refresh(): void {
    this.#snapshot = this.#takeSnapshot();
  }

  /**
   * Rotates a tail with events. The new names are not durable before `syncNames()`.
   * @throws {RotationError}
   */
  async rotate(): Promise<void> {
    const { storage, listener, recentBytesMax } = this.#options;
    const pending = this.#tail;
    const rotated = await rotateTail(storage, pending);
    this.#tail = new CommitFile(TAIL_FILE, rotated.tail);
    this.#tail.recent = new RecentCommits(recentBytesMax);
    this.#pending = [...this.#pending, pending];
    const writable = pending.moveTo(rotated.path, rotated.pending);
    this.refresh();
    listener.rotated();
    try {
      await writable.close();
    } catch (error) {
      // It costs a descriptor, and the rotation is complete.
      listener.report(`${TAIL_FILE}: rotated, but not closed: ${(error as Error).message}`);
    }
  }

  /** Seals the oldest pending file, and switches its readers to the segments. */
  async sealOldest(make: MakeSegment): Promise<SealedFile> {
    const pending = this.oldestPending;
    assert(pending !== null, "there is a file to be sealed");
    this.#manifest = await this.#seal(pending, make);
    return this.#publish(pending);
  }

  async #seal(pending: CommitFile, make: MakeSegment): Promise<Manifest> {
    const { storage, clockMs } = this.#options;
    try {
      const options = { storage, clockMs, make, backlogBytes: this.unsealedBytes };
      return await sealPending(pending, this.#manifest, options);
    } catch (cause) {
      try {
        await removeUnfinished(storage);
      } catch (left) {
        const reason = (left as Error).message;
        const { message } = cause as Error;
        throw new Error(`${message}; what it left could not be removed: ${reason}`, { cause });
      }
      throw cause;
    }
  }

  /** In one turn of the event loop: no reader misses an event or sees it twice. */
  #publish(pending: CommitFile): SealedFile {
    assert(pending.sealedIn === null, "a file is sealed once");
    const known = this.sealed.files.length;
    const segments = this.#manifest.segments.slice(known);
    this.sealed.add(segments);
    this.#pending = this.#pending.slice(1);
    pending.sealedIn = this.sealed.files.slice(known);
    this.refresh();
    this.#options.listener.sealedMore(segments);
    return { file: pending, segments };
  }

  /** Closes a sealed file, after the reads under way, and removes it. */
  async remove({ file, path }: CommitFile): Promise<void> {
    await file.close();
    await removePending(this.#options.storage, path);
  }

  /** Nobody may read any more. */
  async close(): Promise<void> {
    for (const { file } of [...this.#pending, this.#tail]) await file.close();
    await this.sealed.close();
  }

  #takeSnapshot(): LogSnapshot {
    const unsealed = [...this.#pending, this.#tail]
      .filter(({ lastEventId }) => lastEventId !== null)
      .map((file) => new CommitFileView(file));
    return filesSnapshot(this.sealed.files, unsealed);
  }
}

/** Joins the lists when they are first read: ten thousand segments are too much for each commit. */
function filesSnapshot(sealed: readonly LogFile[], unsealed: readonly LogFile[]): LogSnapshot {
  let files: readonly LogFile[] | null = null;
  return {
    frontier: (unsealed.at(-1) ?? sealed.at(-1))?.lastEventId ?? null,
    get files() {
      return files ??= [...sealed, ...unsealed];
    },
  };
}
