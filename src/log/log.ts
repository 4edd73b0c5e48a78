/**
 * The durable log with its one writer: opens and recovers a folder, appends commits, hands out
 * snapshots. The caller holds the writer lock (see runtime/file_lock.ts) from before `openLog`
 * until after `close`.
 */
import { assert } from "../assert.ts";
import { EventIdSource } from "../event/event_id.ts";
import type { PreparedBatch } from "../event/types.ts";
import { RECENT_COMMITS_BYTES_MAX } from "../limits.ts";
import { buildCleanEnd, buildCommit, type StreamGrowth } from "./commit_builder.ts";
import type { CommitFile } from "./commit_file.ts";
import type { BatchEntry } from "./commit_frame.ts";
import { StorageFullError, type WriterPoisonedError } from "./log_error.ts";
import { RecentCommits } from "./recent_commits.ts";
import { recover, type RecoveredLog, type RecoveryListener } from "./recovery.ts";
import { rotateTail } from "./rotation.ts";
import { RowGroupCache } from "./row_group_cache.ts";
import { sealPending, type SealSettings } from "./seal.ts";
import { openListedSegment } from "./listed_segment.ts";
import type { Manifest, SegmentEntry } from "./manifest.ts";
import type { SealedHistory } from "./sealed_history.ts";
import type { Segment } from "./segment_reader.ts";
import { SegmentView } from "./segment_view.ts";
import { CommitFileView } from "./commit_file_view.ts";
import type { LogFile, LogSnapshot } from "./snapshot.ts";
import type { Storage } from "./storage.ts";
import { TailWriter } from "./tail_writer.ts";

export interface LogOptions {
  /** The log folder. */
  storage: Storage;
  /** Milliseconds since 1970. */
  clockMs: () => number;
  /** Fills its argument. */
  randomBytes: (into: Uint8Array) => void;
  listener: LogListener;
  /** How much of the newest commits is kept in memory; `RECENT_COMMITS_BYTES_MAX` if absent. */
  recentBytesMax?: number;
}

export interface LogListener extends RecoveryListener {
  /** A commit is durable and in the snapshot from now on; told before anyone else can see it. */
  committed(batches: readonly CommittedBatch[]): void;
  /**
   * The oldest generation is sealed, in these segments at the end of the sealed history: all that
   * was told of it until the first `rotated()` that is left. Told in the turn of the event loop in
   * which `Log.sealed` and `Log.snapshot` take the segments in.
   */
  sealedMore(segments: readonly Segment[]): void;
}

/** Takes note of nothing. */
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

export class Log {
  readonly #clockMs: () => number;
  readonly #listener: LogListener;
  readonly #ids: EventIdSource;
  readonly #storage: Storage;
  readonly #recentBytesMax: number;
  readonly #rowGroups = new RowGroupCache();
  readonly #sealed: SealedHistory;
  #manifest: Manifest;
  #pending: readonly CommitFile[];
  #tail: CommitFile;
  /** The newest commits of the tail. */
  #recent: RecentCommits;
  #writer: TailWriter;
  #head: string;
  #snapshot: LogSnapshot;
  #appending = false;
  /** Stays true when a sealing fails: the tail may be a pending file by then. */
  #sealing = false;
  #closed = false;

  constructor(options: LogOptions, recovered: RecoveredLog) {
    const { storage, clockMs, randomBytes, listener } = options;
    this.#storage = storage;
    this.#clockMs = clockMs;
    this.#listener = listener;
    this.#ids = new EventIdSource(clockMs, randomBytes, recovered.lastEventId);
    this.#manifest = recovered.manifest;
    this.#sealed = recovered.sealed;
    this.#pending = recovered.pending;
    this.#tail = recovered.tail;
    this.#recentBytesMax = options.recentBytesMax ?? RECENT_COMMITS_BYTES_MAX;
    this.#recent = new RecentCommits(this.#recentBytesMax);
    this.#writer = new TailWriter(recovered.tail, this.#recent);
    this.#head = recovered.head;
    this.#snapshot = this.#takeSnapshot();
  }

  /** What is durable now. */
  get snapshot(): LogSnapshot {
    return this.#snapshot;
  }

  /** What is in segments. */
  get sealed(): SealedHistory {
    return this.#sealed;
  }

  /** Whether there are events that are in no segment. */
  get hasUnsealed(): boolean {
    return this.#pending.length > 0 || this.#tail.lastEventId !== null;
  }

  /** Why no more commits are taken; null while they are. */
  get poison(): WriterPoisonedError | null {
    return this.#writer.poison;
  }

  /**
   * Commits batches as one: all of them are durable when this returns, or none is. One call at a
   * time.
   * @returns one item for each batch, in order.
   * @throws {StorageFullError} there was no room; nothing was written.
   * @throws {WriterPoisonedError} the outcome is unknown, or that of an earlier commit was.
   */
  async append(prepared: readonly PreparedBatch[]): Promise<readonly CommittedBatch[]> {
    assert(!this.#appending && !this.#closed, "commits are appended one at a time");
    assert(!this.#sealing, "nothing is appended during a sealing, nor after one that failed");
    assert(prepared.length > 0, "a commit holds at least one batch");
    this.#appending = true;
    try {
      const built = buildCommit(prepared, this.#ids, this.#head, this.#clockMs());
      const frontier = this.#snapshot.frontier;
      const first = built.commit.batches[0]!.first_event_id;
      assert(frontier === null || frontier < first, "a commit follows the frontier");
      await this.#writer.append(built);
      this.#head = built.commit.head;
      this.#snapshot = this.#takeSnapshot();
      const batches = built.commit.batches.map((entry, i) => ({
        entry,
        streams: built.growth[i]!,
      }));
      this.#listener.committed(batches);
      return batches;
    } finally {
      this.#appending = false;
    }
  }

  /**
   * Moves all that is committed into segments: rotates the tail and seals every pending file. Not
   * while anything is appended or a snapshot is read. When it fails or is stopped, the log can only
   * be closed.
   * @param onSegment told of each segment once it is in the manifest.
   * @returns false when `settings.isStopped` ended it before all was sealed.
   */
  async seal(
    onSegment: (entry: SegmentEntry) => void,
    settings: SealSettings = {},
  ): Promise<boolean> {
    assert(!this.#appending && !this.#closed, "a log is sealed while nothing is appended");
    assert(!this.#sealing, "a log is sealed by one call at a time");
    this.#sealing = true;
    if (this.#tail.lastEventId !== null) {
      const { file: writableFile } = this.#tail;
      const { pending, tail } = await rotateTail(this.#storage, this.#tail);
      this.#pending = [...this.#pending, pending];
      this.#tail = tail;
      this.#recent = new RecentCommits(this.#recentBytesMax);
      this.#writer = new TailWriter(tail, this.#recent);
      await writableFile.close();
    }
    const options = { ...settings, storage: this.#storage, clockMs: this.#clockMs };
    for (const pending of this.#pending) {
      for await (const manifest of sealPending(pending, this.#manifest, options)) {
        this.#manifest = manifest;
        const entry = manifest.segments.at(-1)!;
        this.#sealed.add(await openListedSegment(this.#storage, entry, this.#sealed.blooms));
        onSegment(entry);
      }
      if (this.#sealed.lastEventId !== pending.lastEventId) return false;
      this.#pending = this.#pending.slice(1);
      await pending.file.close();
      if (this.#pending.length > 0 && settings.isStopped?.()) return false;
    }
    this.#snapshot = this.#takeSnapshot();
    this.#sealing = false;
    return true;
  }

  /**
   * Ends a clean run: an empty commit proves that all before it was durable. A poisoned log is only
   * closed, and so is one whose sealing failed. Snapshots must not be read any more.
   */
  async close(): Promise<void> {
    assert(!this.#appending && !this.#closed, "a log is closed once, when nothing is appended");
    this.#closed = true;
    try {
      const changed = this.#tail.head !== null && !this.#tail.endsClean;
      if (changed && this.poison === null && !this.#sealing) {
        await this.#writer.append(buildCleanEnd(this.#head));
      }
    } catch (error) {
      // All events are durable; only the proof of it, for a later check of the file, is missing.
      if (!(error instanceof StorageFullError)) throw error;
      this.#listener.report(`no room for the mark of a clean end: ${error.message}`);
    } finally {
      for (const { file } of [...this.#pending, this.#tail]) await file.close();
      for (const segment of this.#sealed.segments) await segment.close();
    }
  }

  #takeSnapshot(): LogSnapshot {
    const files: LogFile[] = this.#sealed.segments.map((segment) =>
      new SegmentView(segment, this.#rowGroups)
    );
    for (const file of [...this.#pending, this.#tail]) {
      const recent = file === this.#tail ? this.#recent : null;
      if (file.lastEventId !== null) files.push(new CommitFileView(file, recent));
    }
    return { frontier: files.at(-1)?.lastEventId ?? null, files };
  }
}
