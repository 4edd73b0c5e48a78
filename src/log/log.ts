/**
 * The durable log and its single writer: recovers a directory, appends commits, takes snapshots.
 * The caller holds the writer lock (runtime/file_lock.ts) from before `openLog` to after `close`.
 */
import type { Buffer } from "node:buffer";
import { assert, AssertionError } from "../assert.ts";
import { EventIdSource } from "../event/event_id.ts";
import type { PreparedBatch } from "../event/types.ts";
import type { Maybe } from "../maybe.ts";
import { sumOf } from "../sum.ts";
import type { LogSnapshot } from "./read/snapshot.ts";
import { recover, type RecoveredLog } from "./recovery.ts";
import type { LogFiles } from "./sealing/log_files.ts";
import { Sealer, type SealerOptions } from "./sealing/sealer.ts";
import type { MakerSettings } from "./sealing/segment_maker.ts";
import type { SegmentEntry } from "./segment/manifest.ts";
import type { RowGroupDecoder } from "./segment/row_group_decoder.ts";
import { StorageFullError, type WriterPoisonedError } from "./storage/errors.ts";
import { TAIL_FILE } from "./storage/file_names.ts";
import { OwnedStorage } from "./storage/owned_storage.ts";
import type { Storage } from "./storage/storage.ts";
import { describeError } from "./storage/system_error.ts";
import { buildCommit, type BuiltCommit } from "./wal/commit_builder.ts";
import { growthOf } from "./wal/commit_file.ts";
import { type BatchEntry, type Commit, encodeCommit } from "./wal/commit_frame.ts";
import { rotateTail } from "./wal/rotation.ts";
import { TailWriter } from "./wal/tail_writer.ts";

/** A smaller rotation size limits neither a tail's index, which takes a minimum, nor its growth. */
const SMALL_TAIL_BYTES = 1024 * 1024;

export interface LogOptions extends SealerOptions {
  /** The log directory. */
  storage: Storage;
  /** Decodes row groups; by default, this thread does. */
  decoder?: RowGroupDecoder | undefined;
  /** Fills `into` with random bytes. */
  randomBytes: (into: Uint8Array) => void;
}

/**
 * Opens the log as its writer and recovers from a crash if necessary.
 * @throws {CorruptLogError} if committed bytes are damaged or missing; nothing was changed.
 * @throws {UnsupportedFormatError} if a newer program wrote the log.
 */
export async function openLog(options: LogOptions): Promise<Log> {
  const storage = new OwnedStorage(options.storage);
  return new Log(options, storage, await recover(storage, options.report, options.decoder));
}

export class Log {
  readonly storage: OwnedStorage;
  readonly files: LogFiles;
  readonly sealer: Sealer;
  readonly #options: LogOptions;
  readonly #ids: EventIdSource;
  #writer: TailWriter;
  readonly #rotateBytes: number;
  #rotateAtBytes: number;
  #head: string;
  /** Number of calls of `#findDamage()`. */
  #looks = 0;
  #appending = false;
  /** Stays true after `seal()` fails, since the tail may already be a pending file. */
  #sealing = false;
  #closed = false;

  constructor(options: LogOptions, storage: OwnedStorage, recovered: RecoveredLog) {
    const { files, manifest, head } = recovered;
    this.#options = options;
    this.storage = storage;
    this.files = files;
    this.#ids = new EventIdSource(options.clockMs, options.randomBytes, this.snapshot.frontier);
    this.#writer = new TailWriter(files.tail);
    storage.findDamage = () => this.#findDamage();
    this.#rotateBytes = options.sealing?.rotateBytes ?? Infinity;
    this.#rotateAtBytes = this.#rotateBytes;
    this.#head = head;
    this.sealer = new Sealer(storage, files, manifest, options);
  }

  get snapshot(): LogSnapshot {
    return this.files.snapshot;
  }

  /** Chain head after the last event, 64 lowercase hex digits. */
  get head(): string {
    return this.#head;
  }

  /** Sizes for operator reports, with the member names used there. */
  get size() {
    const { segments } = this.sealer;
    const { unsealed, tail } = this.files;
    return {
      log_events: sumOf<{ events: number }>([...segments, ...unsealed], (file) => file.events),
      segments: segments.length,
      segment_bytes: sumOf(segments, ({ bytes }) => bytes),
      pending_files: unsealed.length - 1,
      tail_bytes: tail.endBytes,
      frontier: this.snapshot.frontier,
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
   * @throws like `append()`.
   */
  async replicate(commit: Pick<Commit, "batches" | "head">, lines: Buffer): Promise<void> {
    assert(commit.batches.length > 0, "a commit must have at least one batch");
    while (this.sealer.isBehind) await this.sealer.nextSeal();
    if (this.storage.isDue) await this.storage.assertOwned();
    const growth = [...growthOf(lines)];
    await this.#commit(lines.length, () => ({ ...encodeCommit(commit, [lines]), growth }));
  }

  async #commit(
    sizeBytes: number,
    build: () => Maybe<BuiltCommit>,
  ): Promise<readonly BatchEntry[]> {
    assert(!this.#appending && !this.#closed, "commits must be appended one at a time");
    assert(!this.#sealing, "nothing may be appended during seal() or after it has failed");
    this.#appending = true;
    try {
      await this.#rotateWhenLarge(sizeBytes);
      const built = await build();
      const { frontier } = this.snapshot;
      const firstEventId = built.commit.batches[0]!.first_event_id;
      assert(frontier === null || frontier < firstEventId, "a commit must follow the frontier");
      await this.#writer.append(built);
      if (this.storage.isDue) await this.storage.assertOwned();
      this.#head = built.commit.head;
      this.files.publish();
      return built.commit.batches;
    } finally {
      this.#appending = false;
      this.sealer.start();
    }
  }

  /**
   * Moves all commits into segments: rotates the tail and seals every pending file; see
   * `Sealer.sealAll()`. Must not run concurrently with `append()`. After it fails, for example
   * because `onEvents` throws, the log can only be closed.
   */
  async seal(
    onSegment: (entry: SegmentEntry) => void,
    settings: MakerSettings = {},
  ): Promise<void> {
    assert(!this.#appending && !this.#closed, "a log must not be sealed during an append");
    assert(!this.#sealing && !this.#options.sealing, "only one seal may run at a time");
    this.#sealing = true;
    if (this.files.tail.lastEventId !== null) await this.#rotate();
    await this.sealer.sealAll(onSegment, settings);
    this.#sealing = false;
  }

  /**
   * Closes the log and invalidates all snapshots. Unless the log is poisoned or a seal failed, it
   * appends a clean-shutdown marker: an empty commit proving that everything before it was durable.
   */
  async close(): Promise<void> {
    assert(!this.#appending && !this.#closed, "close() must not run twice or during an append");
    this.#closed = true;
    await this.sealer.close();
    const { tail } = this.files;
    try {
      const changed = tail.head !== null && !tail.endsClean;
      if (changed && this.poison === null && this.storage.loss === null && !this.#sealing) {
        await this.#writer.trim();
        const marker = encodeCommit({ batches: [], head: this.#head }, []);
        await this.#writer.append({ ...marker, growth: [] });
      }
    } catch (error) {
      // All events are durable; only the marker is missing.
      if (!(error instanceof StorageFullError)) throw error;
      this.#options.report(`no space for the clean-shutdown marker: ${describeError(error)}`);
    } finally {
      await this.files.close();
      await this.storage.closeFolders();
    }
  }

  /**
   * Rotates a tail that is large, or that the next commit would make too large. If rotation fails,
   * the tail keeps growing up to twice its rotation size.
   * @param sizeBytes size of the next commit's event lines.
   * @throws {StorageFullError} if rotation failed, and the tail is too large for the commit.
   * @throws {WriterPoisonedError} if the tail is no longer where recovery looks for it.
   */
  async #rotateWhenLarge(sizeBytes: number): Promise<void> {
    const { tail } = this.files;
    const { endBytes, backlogBytes, lastEventId } = tail;
    const isLarge = endBytes >= this.#rotateAtBytes ||
      backlogBytes >= Math.max(this.#rotateAtBytes, SMALL_TAIL_BYTES);
    const isTooLarge = endBytes + sizeBytes > 2 * Math.max(this.#rotateBytes, SMALL_TAIL_BYTES);
    if (!(isLarge || isTooLarge) || lastEventId === null || this.poison !== null) return;
    try {
      await this.#rotate();
      this.#rotateAtBytes = this.#rotateBytes;
    } catch (error) {
      if (tail.path !== TAIL_FILE) {
        throw this.#writer.poisonBy("the tail could not be rotated", error);
      }
      if (this.poison !== null) throw this.poison;
      if (error instanceof AssertionError) throw error;
      const { message } = error as Error;
      if (isTooLarge) {
        throw new StorageFullError(`${TAIL_FILE}: not rotated: ${message}`, { cause: error });
      }
      const keptBytes = endBytes >= this.#rotateAtBytes ? endBytes : backlogBytes;
      this.#rotateAtBytes = Math.ceil(keptBytes + this.#rotateBytes / 4);
      const next = `retrying at ${this.#rotateAtBytes} bytes`;
      this.#options.report(`${TAIL_FILE}: not rotated, ${next}: ${describeError(error)}`);
    }
  }

  async #rotate(): Promise<void> {
    await this.#writer.trim();
    const { file: writable } = this.files.tail;
    this.files.addTail(await rotateTail(this.storage, this.files.tail));
    this.#writer = new TailWriter(this.files.tail);
    // The rotation is complete, so a failure only leaks a descriptor.
    await writable.close().catch(({ message }: Error) => {
      this.#options.report(
        `${TAIL_FILE}: rotated, but its old descriptor is not closed: ${message}`,
      );
    });
  }

  /** Tells that the end of the tail is gone, or a segment, of which each call looks at one. */
  async #findDamage(): Promise<string | null> {
    const { tail, sealed: { files } } = this.files;
    const { path = null } = files[this.#looks++ % files.length] ?? {};
    if (path && await this.storage.identity(path) === "ENOENT") return `${path}: is missing`;
    return await tail.isOverwritten() ? `${TAIL_FILE}: was overwritten` : null;
  }
}
