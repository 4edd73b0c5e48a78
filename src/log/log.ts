/**
 * The durable log with its one writer: recovers a folder, appends commits, gives snapshots. The
 * caller holds the writer lock (runtime/file_lock.ts) from before `openLog` until after `close`.
 */
import { assert } from "../assert.ts";
import { EventIdSource } from "../event/event_id.ts";
import type { PreparedBatch } from "../event/types.ts";
import { inTurns } from "../io_turn.ts";
import {
  BackgroundSealing,
  type BackgroundSealingOptions,
  type SegmentMaker,
} from "./sealing/background_sealing.ts";
import { buildCleanEnd, buildCommit, type StreamGrowth } from "./wal/commit_builder.ts";
import type { CommitFile } from "./wal/commit_file.ts";
import type { BatchEntry } from "./wal/commit_frame.ts";
import { TAIL_FILE } from "./storage/file_names.ts";
import { StorageFullError, type WriterPoisonedError } from "./storage/errors.ts";
import { LogFiles, type MoveListener } from "./log_files.ts";
import type { SegmentEntry } from "./segment/manifest.ts";
import { recover, type RecoveredLog, type RecoveryListener } from "./recovery.ts";
import { RotationError, syncNames } from "./wal/rotation.ts";
import type { SealedHistory } from "./segment/sealed_history.ts";
import { type MakerSettings, makeSegment, type SegmentTask } from "./sealing/segment_maker.ts";
import type { LogSnapshot } from "./read/snapshot.ts";
import type { Storage } from "./storage/storage.ts";
import { TailWriter } from "./wal/tail_writer.ts";

/** The newest commits, kept in memory for readers at the end of the log. */
export const RECENT_COMMITS_BYTES_MAX: number = 8 * 1024 * 1024;

/** Rotated tails that may wait to be sealed. Then the tail grows, and takes no more descriptors. */
export const PENDING_FILES_MAX: number = 8;

export interface LogOptions {
  /** The log folder. */
  storage: Storage;
  /** Milliseconds since 1970. */
  clockMs: () => number;
  /** Fills its argument. */
  randomBytes: (into: Uint8Array) => void;
  listener: LogListener;
  /** `RECENT_COMMITS_BYTES_MAX` if absent. */
  recentBytesMax?: number;
  /** Seals the log while it is open; if absent, only `seal()` does. */
  sealing?: SealingOptions;
}

export interface SealingOptions {
  maker: SegmentMaker;
  /** Size at which the tail is rotated. */
  rotateBytes: number;
  /** See `BackgroundSealingOptions`. */
  pause?: BackgroundSealingOptions["pause"];
}

export interface LogListener extends RecoveryListener, MoveListener {
  /** A commit is now durable and in the snapshot. Called before anyone else can see it. */
  committed(batches: readonly CommittedBatch[]): void;
}

/** Ignores everything. */
export const SILENT_LISTENER: LogListener = {
  sealed() {},
  batch() {},
  rotated() {},
  report() {},
  committed() {},
  sealedMore() {},
};

/** A batch that has become durable. */
export interface CommittedBatch {
  entry: BatchEntry;
  streams: readonly StreamGrowth[];
}

/**
 * Opens the log as its writer, recovering what a crash left.
 * @throws {CorruptLogError} committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} a newer program wrote the folder.
 */
export async function openLog(options: LogOptions): Promise<Log> {
  return new Log(options, await recover(options.storage, options.listener));
}

/** Ends a sealing that should stop. */
class SealStopped extends Error {}

export class Log {
  readonly #options: LogOptions;
  readonly #ids: EventIdSource;
  readonly #files: LogFiles;
  readonly #background: BackgroundSealing | null;
  #writer: TailWriter;
  /** Size of the tail at which it is rotated. */
  #rotateAtBytes: number;
  #head: string;
  #appending = false;
  /** Stays true when a sealing by `seal()` fails: the tail may be a pending file by then. */
  #sealing = false;
  #closed = false;

  constructor(options: LogOptions, recovered: RecoveredLog) {
    const { clockMs, randomBytes, recentBytesMax = RECENT_COMMITS_BYTES_MAX } = options;
    this.#options = options;
    this.#ids = new EventIdSource(clockMs, randomBytes, recovered.lastEventId);
    this.#files = new LogFiles({ ...options, recentBytesMax }, recovered);
    this.#writer = new TailWriter(options.storage, this.#files.tail);
    this.#rotateAtBytes = this.#rotateBytes;
    this.#head = recovered.head;
    this.#background = options.sealing === undefined ? null : this.#sealingBy(options.sealing);
    this.#background?.start();
  }

  /** What is durable now. */
  get snapshot(): LogSnapshot {
    return this.#files.snapshot;
  }

  /** What is in segments. */
  get sealed(): SealedHistory {
    return this.#files.sealed;
  }

  /** Whether some events are in no segment. */
  get hasUnsealed(): boolean {
    return this.#files.oldestPending !== null || this.#files.tail.lastEventId !== null;
  }

  /** Why the log takes no more commits; null while it does. */
  get poison(): WriterPoisonedError | null {
    return this.#writer.poison;
  }

  /**
   * Commits batches as one: all are durable when this returns, or none is. One call at a time.
   * @returns one item for each batch, in order.
   * @throws {StorageFullError} there was no room; nothing was written.
   * @throws {WriterPoisonedError} the outcome is unknown, or that of an earlier commit was.
   */
  async append(prepared: readonly PreparedBatch[]): Promise<readonly CommittedBatch[]> {
    assert(prepared.length > 0, "a commit holds at least one batch");
    assert(!this.#appending && !this.#closed, "commits are appended one at a time");
    assert(!this.#sealing, "nothing is appended during a sealing, nor after one that failed");
    this.#appending = true;
    try {
      await this.#rotateWhenLarge();
      const nowMs = this.#options.clockMs();
      const parts = { batches: prepared, ids: this.#ids, head: this.#head, nowMs };
      const built = await inTurns(buildCommit(parts));
      const { frontier } = this.snapshot;
      const firstEventId = built.commit.batches[0]!.first_event_id;
      assert(frontier === null || frontier < firstEventId, "a commit follows the frontier");
      await this.#writer.append(built);
      this.#head = built.commit.head;
      this.#files.refresh();
      const { growth } = built;
      const batches = built.commit.batches.map((entry, i) => ({ entry, streams: growth[i]! }));
      this.#options.listener.committed(batches);
      return batches;
    } finally {
      this.#appending = false;
      // The names of a rotation before are durable now.
      this.#background?.start();
    }
  }

  /**
   * Moves all commits into segments: rotates the tail and seals every pending file. Not while
   * anything is appended. When it fails or is stopped, the log can only be closed.
   * @param onSegment receives each segment once it is in the manifest.
   * @param isStopped called before each commit: whether to stop. The next sealing starts again with
   *   a pending file that was sealed in part.
   * @returns false when it was stopped before all was sealed.
   */
  async seal(
    onSegment: (entry: SegmentEntry) => void,
    { isStopped = () => false, ...settings }: MakerSettings & { isStopped?: () => boolean } = {},
  ): Promise<boolean> {
    assert(!this.#appending && !this.#closed, "a log is sealed while nothing is appended");
    assert(!this.#sealing && this.#background === null, "a log is sealed by one at a time");
    this.#sealing = true;
    const onEvents = (events: number) => {
      if (isStopped()) throw new SealStopped();
      settings.onEvents?.(events);
    };
    const { storage } = this.#options;
    const make = (task: SegmentTask) => makeSegment(storage, task, { ...settings, onEvents });
    if (this.#files.tail.lastEventId !== null) {
      await this.#rotate();
      await syncNames(storage);
    }
    try {
      while (this.#files.oldestPending !== null) {
        const { file, segments } = await this.#files.sealOldest(make);
        for (const entry of segments) onSegment(entry);
        await this.#files.remove(file);
      }
    } catch (error) {
      if (error instanceof SealStopped) return false;
      throw error;
    }
    this.#sealing = false;
    return true;
  }

  /**
   * Ends a clean run: an empty commit proves that all before it was durable. A log that is poisoned
   * or whose sealing failed gets none. Snapshots may not be read any more.
   */
  async close(): Promise<void> {
    assert(!this.#appending && !this.#closed, "a log is closed once, when nothing is appended");
    this.#closed = true;
    await this.#background?.close();
    const { tail } = this.#files;
    try {
      const changed = tail.head !== null && !tail.endsClean;
      if (changed && this.poison === null && !this.#sealing) {
        await this.#writer.append(buildCleanEnd(this.#head));
      }
    } catch (error) {
      // All events are durable; only the proof of that is missing.
      if (!(error instanceof StorageFullError)) throw error;
      this.#report(`no room for the mark of a clean end: ${error.message}`);
    } finally {
      await this.#files.close();
    }
  }

  #sealingBy({ maker, pause }: SealingOptions): BackgroundSealing {
    return new BackgroundSealing({
      maker,
      pause,
      // Not before the pending file's name is durable: after a crash, a start that found the
      // segments listed and the old name would take the tail for events out of order.
      nextPath: () => this.#writer.isSettled ? this.#files.oldestPending?.path ?? null : null,
      sealNext: async () => this.#removeSealed((await this.#files.sealOldest(maker.make)).file),
      report: (line) => this.#report(line),
    });
  }

  async #removeSealed(sealed: CommitFile): Promise<void> {
    try {
      await this.#files.remove(sealed);
    } catch (error) {
      const { message } = error as Error;
      this.#report(`${sealed.path}: sealed, left for the next start to remove: ${message}`);
    }
  }

  get #rotateBytes(): number {
    return this.#options.sealing?.rotateBytes ?? Infinity;
  }

  /**
   * Rotates a large tail, unless PENDING_FILES_MAX wait to be sealed. A tail that cannot be rotated
   * grows on.
   * @throws {WriterPoisonedError} the tail is no longer where a start looks for it.
   */
  async #rotateWhenLarge(): Promise<void> {
    const { tail, pendingCount } = this.#files;
    const isDue = tail.endBytes >= this.#rotateAtBytes && pendingCount < PENDING_FILES_MAX;
    if (!isDue || tail.lastEventId === null || this.poison !== null) return;
    try {
      await this.#rotate();
      this.#rotateAtBytes = this.#rotateBytes;
    } catch (error) {
      if (!(error instanceof RotationError)) throw error;
      this.#keepTail(error);
    }
  }

  async #rotate(): Promise<void> {
    await this.#files.rotate();
    this.#writer = new TailWriter(this.#options.storage, this.#files.tail);
    this.#writer.unsettle();
  }

  /** Continues with a tail whose rotation failed. */
  #keepTail(failure: RotationError): void {
    if (failure.outcome === "torn") throw this.#writer.poisonBy("the tail lost its name", failure);
    if (failure.outcome === "undone") this.#writer.unsettle();
    this.#rotateAtBytes = this.#files.tail.endBytes + this.#rotateBytes;
    this.#report(
      `${TAIL_FILE}: not rotated, tried again at ${this.#rotateAtBytes} bytes: ${failure.message}`,
    );
  }

  #report(line: string): void {
    this.#options.listener.report(line);
  }
}
