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
import type { FileSnapshot, LogSnapshot } from "./snapshot.ts";
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
}

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
  readonly #pending: readonly CommitFile[];
  readonly #tail: CommitFile;
  readonly #recent: RecentCommits;
  readonly #writer: TailWriter;
  #head: string;
  #snapshot: LogSnapshot;
  #appending = false;
  #closed = false;

  constructor(options: LogOptions, recovered: RecoveredLog) {
    const { clockMs, randomBytes, listener } = options;
    this.#clockMs = clockMs;
    this.#listener = listener;
    this.#ids = new EventIdSource(clockMs, randomBytes, recovered.lastEventId);
    this.#pending = recovered.pending;
    this.#tail = recovered.tail;
    this.#recent = new RecentCommits(options.recentBytesMax ?? RECENT_COMMITS_BYTES_MAX);
    this.#writer = new TailWriter(recovered.tail, this.#recent);
    this.#head = recovered.head;
    this.#snapshot = this.#takeSnapshot();
  }

  /** What is durable now. */
  get snapshot(): LogSnapshot {
    return this.#snapshot;
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
   * Ends a clean run: an empty commit proves that all before it was durable. A poisoned log is only
   * closed. Snapshots must not be read any more.
   */
  async close(): Promise<void> {
    assert(!this.#appending && !this.#closed, "a log is closed once, when nothing is appended");
    this.#closed = true;
    try {
      const changed = this.#tail.head !== null && !this.#tail.endsClean;
      if (changed && this.poison === null) await this.#writer.append(buildCleanEnd(this.#head));
    } catch (error) {
      // All events are durable; only the proof of it, for a later check of the file, is missing.
      if (!(error instanceof StorageFullError)) throw error;
      this.#listener.report(`no room for the mark of a clean end: ${error.message}`);
    } finally {
      for (const { file } of [...this.#pending, this.#tail]) await file.close();
    }
  }

  #takeSnapshot(): LogSnapshot {
    const files: FileSnapshot[] = [];
    for (const commitFile of [...this.#pending, this.#tail]) {
      const { path, file, index, endBytes, lastEventId } = commitFile;
      const recent = commitFile === this.#tail ? this.#recent : null;
      if (lastEventId !== null) files.push({ path, file, index, recent, endBytes, lastEventId });
    }
    return { frontier: files.at(-1)?.lastEventId ?? null, files };
  }
}
