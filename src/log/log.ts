/**
 * The durable log and its single writer: recovers a directory, appends commits, takes snapshots.
 * The caller holds the writer lock (runtime/file_lock.ts) from before `openLog` to after `close`.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { EventIdSource } from "../event/event_id.ts";
import type { PreparedBatch } from "../event/types.ts";
import { BACKLOG_WAIT_BYTES } from "../limits.ts";
import { sumOf } from "../sum.ts";
import type { LogFile, LogSnapshot } from "./read/snapshot.ts";
import { recover, type RecoveredLog, type RecoveryOptions, type Report } from "./recovery.ts";
import {
  BackgroundSealing,
  type BackgroundSealingOptions,
  type IndexMaker,
  type SegmentMaker,
} from "./sealing/background_sealing.ts";
import { mergeNext } from "./sealing/index_merging.ts";
import { removePending, removeUnfinished, sealPending } from "./sealing/seal.ts";
import {
  type MakerSettings,
  type MakeSegment,
  makeSegment,
  type SegmentTask,
} from "./sealing/segment_maker.ts";
import type { Manifest, SegmentEntry } from "./segment/manifest.ts";
import type { SealedHistory } from "./segment/sealed_history.ts";
import { StorageFullError, WriterPoisonedError } from "./storage/errors.ts";
import { TAIL_FILE } from "./storage/file_names.ts";
import { OwnedStorage } from "./storage/owned_storage.ts";
import { buildCommit, type BuiltCommit, frameCommit } from "./wal/commit_builder.ts";
import { CommitFile, growthOf } from "./wal/commit_file.ts";
import { fileView } from "./wal/commit_file_view.ts";
import type { BatchEntry, Commit } from "./wal/commit_frame.ts";
import { rotateTail, RotationError } from "./wal/rotation.ts";
import { TailWriter } from "./wal/tail_writer.ts";

/** Rotated tails from which on new batches wait, since each stays open until sealed. */
export const PENDING_FILES_MAX: number = 32;

/** A smaller rotation size limits neither a tail's index, which takes a minimum, nor its growth. */
const SMALL_TAIL_BYTES = 1024 * 1024;

/** `storage` is the log directory. */
export interface LogOptions extends RecoveryOptions {
  /** Returns Unix milliseconds. */
  clockMs: () => number;
  /** Fills `into` with random bytes. */
  randomBytes: (into: Uint8Array) => void;
  /** Background sealing; if absent, only `seal()` seals. */
  sealing?: SealingOptions;
}

export interface SealingOptions {
  maker: SegmentMaker;
  /** Merges indexes; if absent, those of single segments are used. */
  indexMaker?: IndexMaker;
  rotateBytes: number;
  /** See `isBehind`; default `BACKLOG_WAIT_BYTES`. */
  backlogWaitBytes?: number | undefined;
  /** How long a new batch waits while `isBehind`; default `BACKLOG_WAIT_MS`. */
  backlogWaitMs?: number | undefined;
  /** See `BackgroundSealingOptions`. */
  pause?: BackgroundSealingOptions["pause"];
}

/**
 * Opens the log as its writer and recovers from a crash if necessary.
 * @throws {CorruptLogError} if committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} if a newer program wrote the log.
 */
export async function openLog(options: LogOptions): Promise<Log> {
  const storage = new OwnedStorage(options.storage);
  return new Log(options, storage, await recover(storage, options));
}

class SealStopped extends Error {}

export class Log {
  readonly storage: OwnedStorage;
  readonly sealed: SealedHistory;
  /**
   * The files that are not yet sealed, oldest first: rotated tails, then the tail. A file leaves
   * this list in the same turn of the event loop in which its segments are added to `sealed`.
   */
  unsealed: readonly CommitFile[];
  readonly #options: LogOptions;
  readonly #report: Report;
  readonly #ids: EventIdSource;
  readonly #background: BackgroundSealing | null;
  readonly #merging: BackgroundSealing | null;
  #manifest: Manifest;
  #writer: TailWriter;
  #snapshot: LogSnapshot;
  #rotateAtBytes: number;
  #head: string;
  #nextSeal = Promise.withResolvers<void>();
  #looks = 0;
  #appending = false;
  /** Stays true after `seal()` fails, since the tail may already be a pending file. */
  #sealing = false;
  #closed = false;

  constructor(options: LogOptions, storage: OwnedStorage, recovered: RecoveredLog) {
    this.#options = options;
    this.storage = storage;
    this.#report = options.report;
    this.#ids = new EventIdSource(options.clockMs, options.randomBytes, recovered.lastEventId);
    storage.findDamage = () => this.#findDamage();
    this.sealed = recovered.sealed;
    this.#manifest = recovered.manifest;
    this.unsealed = [...recovered.pending, recovered.tail];
    this.#writer = new TailWriter(this.#tail);
    this.#snapshot = this.#takeSnapshot();
    this.#rotateAtBytes = this.#rotateBytes;
    this.#head = recovered.head;
    this.#background = options.sealing === undefined ? null : this.#sealingBy(options.sealing);
    this.#background?.start();
    this.#merging = options.sealing === undefined ? null : this.#mergingBy(options.sealing);
    this.#merging?.start();
  }

  get snapshot(): LogSnapshot {
    return this.#snapshot;
  }

  get #tail(): CommitFile {
    return this.unsealed.at(-1)!;
  }

  /** Rotated tails that are not yet sealed, oldest first. */
  get #pending(): readonly CommitFile[] {
    return this.unsealed.slice(0, -1);
  }

  get #oldestPending(): CommitFile | undefined {
    return this.unsealed.length > 1 ? this.unsealed[0] : undefined;
  }

  get hasUnsealed(): boolean {
    return this.unsealed.length > 1 || this.#tail.lastEventId !== null;
  }

  /**
   * Whether so much is unsealed that new batches must wait for sealing. False if there is no
   * pending file, whose sealing would change that.
   */
  get isBehind(): boolean {
    const { backlogWaitBytes = BACKLOG_WAIT_BYTES } = this.#options.sealing ?? {};
    const pending = this.unsealed.length - 1;
    return this.#background !== null && pending > 0 &&
      (pending >= PENDING_FILES_MAX || this.#backlogBytes() >= backlogWaitBytes);
  }

  /** Resolves when the next pending file has been sealed, or `endWaits()` is called. */
  get nextSeal(): Promise<void> {
    return this.#nextSeal.promise;
  }

  /** Chain head after the last event, 64 lowercase hex digits. */
  get head(): string {
    return this.#head;
  }

  /** Sizes for operator reports, with the member names used there. */
  get size() {
    const { segments } = this.#manifest;
    return {
      log_events: sumOf<{ events: number }>([...segments, ...this.unsealed], (file) => file.events),
      segments: segments.length,
      segment_bytes: sumOf(segments, ({ bytes }) => bytes),
      pending_files: this.unsealed.length - 1,
      tail_bytes: this.#tail.endBytes,
      frontier: this.#snapshot.frontier,
      head: this.#head,
    };
  }

  /** Why the log has stopped accepting commits; null if it has not. */
  get poison(): WriterPoisonedError | null {
    return this.#writer.poison;
  }

  /**
   * Commits batches atomically; they are durable when this resolves. Calls must not overlap.
   * @returns each batch's entry, in order.
   * @throws {StorageFullError} if the disk is full; nothing was written.
   * @throws {WriterPoisonedError} if the outcome of this commit or an earlier one is unknown.
   */
  async append(prepared: readonly PreparedBatch[]): Promise<readonly BatchEntry[]> {
    assert(prepared.length > 0, "a commit must have at least one batch");
    const sizeBytes = sumOf(prepared, ({ events }) => events.lines.length);
    return await this.#commit(sizeBytes, () => {
      const nowMs = this.#options.clockMs();
      return buildCommit({ batches: prepared, ids: this.#ids, head: this.#head, nowMs });
    });
  }

  /**
   * Commits, unchanged, batches that another log has already committed. Used by replicas. The
   * caller has verified the batches and must not call `append()`, whose ids might precede theirs.
   * @param lines the event lines from all batches.
   * @throws {StorageFullError} if the disk is full; nothing was written.
   * @throws {WriterPoisonedError} if the outcome of this commit or an earlier one is unknown.
   */
  async replicate(commit: Pick<Commit, "batches" | "head">, lines: Buffer): Promise<void> {
    assert(commit.batches.length > 0, "a commit must have at least one batch");
    while (this.isBehind) await this.nextSeal;
    if (this.storage.isDue) await this.storage.assertOwned();
    const build = () => Promise.resolve(frameCommit(commit, [lines], [...growthOf(lines)]));
    await this.#commit(lines.length, build);
  }

  /** @param sizeBytes size of the commit's event lines. */
  async #commit(
    sizeBytes: number,
    build: () => Promise<BuiltCommit>,
  ): Promise<readonly BatchEntry[]> {
    assert(!this.#appending && !this.#closed, "commits must be appended one at a time");
    assert(!this.#sealing, "nothing may be appended during seal() or after it has failed");
    this.#appending = true;
    try {
      await this.#rotateWhenLarge(sizeBytes);
      const built = await build();
      const { frontier } = this.#snapshot;
      const firstEventId = built.commit.batches[0]!.first_event_id;
      assert(frontier === null || frontier < firstEventId, "a commit must follow the frontier");
      await this.#writer.append(built);
      if (this.storage.loss !== null) throw new WriterPoisonedError(this.storage.loss);
      this.#head = built.commit.head;
      this.#snapshot = this.#takeSnapshot();
      return built.commit.batches;
    } finally {
      this.#appending = false;
      this.#background?.start();
    }
  }

  /**
   * Moves all commits into segments: rotates the tail and seals every pending file. Must not run
   * concurrently with `append()`. After it fails or is stopped, the log can only be closed.
   * @param onSegment receives each segment once it is in the manifest.
   * @param isStopped called before each commit; returns whether to stop. The next seal restarts a
   *   partly sealed pending file from its beginning.
   * @returns false if it was stopped before everything was sealed.
   */
  async seal(
    onSegment: (entry: SegmentEntry) => void,
    { isStopped = () => false, ...settings }: MakerSettings & { isStopped?: () => boolean } = {},
  ): Promise<boolean> {
    assert(!this.#appending && !this.#closed, "a log must not be sealed during an append");
    assert(!this.#sealing && this.#background === null, "only one seal may run at a time");
    this.#sealing = true;
    const onEvents = (events: number) => {
      if (isStopped()) throw new SealStopped();
      settings.onEvents?.(events);
    };
    const make = (task: SegmentTask) => makeSegment(this.storage, task, { ...settings, onEvents });
    if (this.#tail.lastEventId !== null) await this.#rotate();
    try {
      for (const file of this.#pending) {
        for (const entry of await this.#sealOldest(make)) onSegment(entry);
        await this.#remove(file);
      }
    } catch (error) {
      if (error instanceof SealStopped) return false;
      throw error;
    }
    this.#sealing = false;
    return true;
  }

  /**
   * Closes the log and invalidates all snapshots. Unless the log is poisoned or a seal failed, it
   * appends a clean-shutdown marker: an empty commit proving that everything before it was durable.
   */
  async close(): Promise<void> {
    assert(!this.#appending && !this.#closed, "close() must not run twice or during an append");
    this.#closed = true;
    await this.#background?.close();
    await this.#merging?.close();
    try {
      const changed = this.#tail.head !== null && !this.#tail.endsClean;
      if (changed && this.poison === null && this.storage.loss === null && !this.#sealing) {
        await this.#writer.trim();
        await this.#writer.append(frameCommit({ batches: [], head: this.#head }, [], []));
      }
    } catch (error) {
      // All events are durable; only the marker is missing.
      if (!(error instanceof StorageFullError)) throw error;
      this.#report(`no space for the clean-shutdown marker: ${error.message}`);
    } finally {
      for (const { file } of this.unsealed) await file.close();
      await this.sealed.close();
      await this.storage.closeFolders();
    }
  }

  #sealingBy({ maker, pause }: SealingOptions): BackgroundSealing {
    return new BackgroundSealing({
      maker,
      pause,
      nextPath: () => this.#oldestPending?.path ?? null,
      sealNext: async () => {
        const file = this.#oldestPending!;
        await this.#sealOldest(maker.make);
        await this.#remove(file).catch(({ message }: Error) => {
          this.#report(`${file.path}: sealed, but not removed until restart: ${message}`);
        });
      },
      report: this.#report,
    });
  }

  #mergingBy({ indexMaker: maker, pause }: SealingOptions): BackgroundSealing | null {
    if (maker === undefined) return null;
    const { storage, sealed } = this;
    return new BackgroundSealing({
      maker,
      pause,
      report: this.#report,
      failure: "not merged",
      nextPath: () => sealed.leftover ?? sealed.nextMerge()?.run.path ?? null,
      sealNext: () => mergeNext(storage, sealed, maker),
    });
  }

  /** Seals the oldest pending file and switches its readers to the segments. */
  async #sealOldest(make: MakeSegment): Promise<readonly SegmentEntry[]> {
    const pending = this.#oldestPending;
    assert(pending !== undefined, "a pending file must exist");
    const { storage } = this;
    // If an earlier attempt could not remove its files, the reason is reported, not an EEXIST.
    await removeUnfinished(storage);
    try {
      // A thread writes the segment on its own.
      await storage.assertOwned();
      const { clockMs } = this.#options;
      const options = { storage, clockMs, make, backlogBytes: () => this.#backlogBytes() };
      this.#manifest = await sealPending(pending, this.#manifest, options);
    } catch (error) {
      await removeUnfinished(storage).catch(() => {});
      throw error;
    }
    return this.#publish(pending);
  }

  /** Runs in one turn of the event loop, so that no reader misses an event or sees it twice. */
  #publish(pending: CommitFile): readonly SegmentEntry[] {
    const known = this.sealed.files.length;
    const segments = this.#manifest.segments.slice(known);
    this.sealed.add(segments);
    this.#merging?.start();
    this.unsealed = this.unsealed.slice(1);
    pending.sealInto(this.sealed.files.slice(known));
    this.#snapshot = this.#takeSnapshot();
    this.endWaits();
    return segments;
  }

  /** Resolves `nextSeal` early. */
  endWaits(): void {
    this.#nextSeal.resolve();
    this.#nextSeal = Promise.withResolvers();
  }

  #backlogBytes(): number {
    return sumOf(this.unsealed, ({ backlogBytes }) => backlogBytes);
  }

  /** Closes a sealed file once its active reads finish, then removes it. */
  async #remove({ file, path }: CommitFile): Promise<void> {
    await file.close();
    await removePending(this.storage, path);
  }

  get #rotateBytes(): number {
    return this.#options.sealing?.rotateBytes ?? Infinity;
  }

  /**
   * Rotates a tail that is large, or that the next commit would make too large. If rotation fails,
   * the tail keeps growing up to twice its rotation size.
   * @param sizeBytes size of the next commit's event lines.
   * @throws {StorageFullError} if rotation failed, and the tail is too large for the commit.
   * @throws {WriterPoisonedError} if the tail is no longer where recovery looks for it.
   */
  async #rotateWhenLarge(sizeBytes: number): Promise<void> {
    const { endBytes, backlogBytes, lastEventId } = this.#tail;
    const isLarge = endBytes >= this.#rotateAtBytes ||
      backlogBytes >= Math.max(this.#rotateAtBytes, SMALL_TAIL_BYTES);
    const isTooLarge = endBytes + sizeBytes > 2 * Math.max(this.#rotateBytes, SMALL_TAIL_BYTES);
    if (!(isLarge || isTooLarge) || lastEventId === null || this.poison !== null) return;
    try {
      await this.#rotate();
      this.#rotateAtBytes = this.#rotateBytes;
    } catch (error) {
      if (!(error instanceof RotationError)) throw error;
      if (!error.isTailKept) throw this.#writer.poisonBy("the tail could not be rotated", error);
      if (isTooLarge) throw new StorageFullError(`${TAIL_FILE}: not rotated: ${error.message}`);
      this.#keepTail(error.message);
    }
  }

  #keepTail(reason: string): void {
    const { endBytes, backlogBytes } = this.#tail;
    const sizeBytes = endBytes >= this.#rotateAtBytes ? endBytes : backlogBytes;
    this.#rotateAtBytes = Math.ceil(sizeBytes + this.#rotateBytes / 4);
    this.#report(`${TAIL_FILE}: not rotated, retrying at ${this.#rotateAtBytes} bytes: ${reason}`);
  }

  /** Rotates a tail that has events. @throws {RotationError} @throws {WriterPoisonedError} */
  async #rotate(): Promise<void> {
    const pending = this.#tail;
    await this.#writer.trim();
    const rotated = await rotateTail(this.storage, pending);
    const writable = pending.moveTo(rotated.path, rotated.pending);
    this.unsealed = [...this.unsealed, new CommitFile(TAIL_FILE, rotated.tail)];
    this.#writer = new TailWriter(this.#tail);
    this.#snapshot = this.#takeSnapshot();
    // The rotation is complete, so a failure only leaks a descriptor.
    await writable.close().catch(({ message }: Error) => {
      this.#report(`${TAIL_FILE}: rotated, but closing the old descriptor failed: ${message}`);
    });
  }

  /** Tells that the end of the tail is gone, or a segment, of which each call looks at one. */
  async #findDamage(): Promise<string | null> {
    const { files } = this.sealed;
    const { path = null } = files[this.#looks++ % files.length] ?? {};
    if (path && await this.storage.identity(path) === "ENOENT") return `${path}: is missing`;
    return await this.#tail.isOverwritten() ? `${TAIL_FILE}: was overwritten` : null;
  }

  #takeSnapshot(): LogSnapshot {
    const sealed = this.sealed.files;
    const unsealed = this.unsealed.filter(({ lastEventId }) => lastEventId !== null).map(fileView);
    let files: readonly LogFile[] | null = null;
    return {
      frontier: (unsealed.at(-1) ?? sealed.at(-1))?.lastEventId ?? null,
      /** Built on first use, since copying ten thousand segments on every commit is too slow. */
      get files() {
        return files ??= [...sealed, ...unsealed];
      },
    };
  }
}
