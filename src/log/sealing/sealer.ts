/**
 * Seals rotated tails, oldest first, and merges the indexes of segments; the only writer of the
 * manifest. To seal a pending file:
 *
 * 1. Make its segments, each synced, read back and then renamed. After a crash, the next start
 *    removes them, since the manifest does not list them, and the file is sealed again.
 * 2. Replace the manifest, atomically and durably. After a crash, the next start finds either the
 *    old manifest, as in 1, or the new one, as in 3.
 * 3. Switch readers to the segments, in one turn of the event loop, and remove the file. After a
 *    crash, the next start removes it, since segments in the manifest contain its events.
 *
 * While sealing is behind, the first segment of the next file is made at the same time, which is
 * step 1 for that file; it is renamed only when its turn has come.
 */
import { assert } from "../../assert.ts";
import { GENESIS_HEAD_HEX } from "../../event/chain.ts";
import { formatTimestamp } from "../../event/timestamp.ts";
import { BACKLOG_WAIT_BYTES, BACKLOG_WAIT_MS } from "../../limits.ts";
import { sumOf } from "../../sum.ts";
import {
  type Manifest,
  type SegmentEntry,
  withSegments,
  writeManifest,
} from "../segment/manifest.ts";
import type { MergePlan } from "../segment/sealed_history.ts";
import {
  MANIFEST_TEMPORARY_FILE,
  PENDING_FOLDER,
  SEGMENT_TEMPORARY_FILES,
  segmentPath,
  SEGMENTS_FOLDER,
} from "../storage/file_names.ts";
import type { OwnedStorage } from "../storage/owned_storage.ts";
import { removeIfThere } from "../storage/storage.ts";
import type { CommitFile } from "../wal/commit_file.ts";
import { BackgroundJobs, type Job, type Pause } from "./background_jobs.ts";
import { mergeNext } from "./index_merging.ts";
import type { LogFiles } from "./log_files.ts";
import {
  type MadeSegment,
  type MakerSettings,
  type MakeSegment,
  makeSegment,
  type SegmentTask,
} from "./segment_maker.ts";
import { UNTHROTTLED_BACKLOG } from "./throttle.ts";

/** Rotated tails from which on new batches wait, since each stays open until sealed. */
export const PENDING_FILES_MAX: number = 32;

/** Makes files under their temporary names while the log is being served. */
export interface Maker {
  makeSegment: MakeSegment;
  /** Merges indexes; if absent, those of single segments are used. */
  makeIndex?: (plan: MergePlan) => Promise<void>;
  /** Rejects active requests and frees all resources. */
  close(): Promise<void>;
}

/** How a log is sealed while it is being served. */
export interface SealingOptions {
  maker: Maker;
  rotateBytes: number;
  /** See `isBehind`; default `BACKLOG_WAIT_BYTES`. */
  backlogWaitBytes?: number | undefined;
  /** How long a new batch waits while `isBehind`; default `BACKLOG_WAIT_MS`. */
  backlogWaitMs?: number | undefined;
  /** Waits before a retry; defaults to a timer. */
  pause?: Pause;
}

export interface SealerOptions {
  /** Returns Unix milliseconds. */
  clockMs: () => number;
  report: (line: string) => void;
  /** Background sealing; if absent, only `sealAll()` seals. */
  sealing?: SealingOptions;
}

interface Seal {
  file: CommitFile;
  /** The temporary name of its segments. */
  into: string;
  /** Its first segment, if that was begun before it was the turn of the file. */
  first: Promise<MadeSegment> | null;
}

export class Sealer {
  readonly #storage: OwnedStorage;
  readonly #files: LogFiles;
  readonly #options: SealerOptions;
  readonly #seals: BackgroundJobs;
  readonly #merges: BackgroundJobs;
  #manifest: Manifest;
  /** The backlog, as the thread that makes a segment sees it; 1 while nothing is appended. */
  readonly #urgency = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT));
  /** The seal of the second pending file, if it was begun. */
  #begun: Seal | null = null;
  /** End the waits for a seal. A promise for all would keep something of each that times out. */
  readonly #waits = new Set<() => void>();
  /** The last event when the last segment was begun. */
  #lastAppended: string | null | undefined;

  constructor(storage: OwnedStorage, files: LogFiles, manifest: Manifest, options: SealerOptions) {
    this.#storage = storage;
    this.#files = files;
    this.#manifest = manifest;
    this.#options = options;
    const { report, sealing } = options;
    this.#seals = new BackgroundJobs(() => this.#sealJob(), report, sealing?.pause);
    this.#merges = new BackgroundJobs(() => this.#mergeJob(), report, sealing?.pause);
    this.start();
    this.#merges.start();
    files.sealed.onLoss = () => this.#merges.start();
  }

  get segments(): readonly SegmentEntry[] {
    return this.#manifest.segments;
  }

  /**
   * How much of what may be unsealed is: new batches must wait for sealing from 1 on. 0 if there is
   * no pending file, whose sealing would change that.
   */
  get backlog(): number {
    const { sealing } = this.#options;
    const { unsealed } = this.#files;
    const pending = unsealed.length - 1;
    if (sealing === undefined || pending === 0) return 0;
    const { backlogWaitBytes = BACKLOG_WAIT_BYTES } = sealing;
    const sizeBytes = sumOf(unsealed, ({ backlogBytes }) => backlogBytes);
    return Math.max(pending / PENDING_FILES_MAX, sizeBytes / backlogWaitBytes);
  }

  get isBehind(): boolean {
    return this.backlog >= 1;
  }

  /** Waits until the next pending file has been sealed, `endWaits()` is called, or time is up. */
  async nextSeal(timeoutMs: number = BACKLOG_WAIT_MS): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waits.add(resolve);
    const timer = setTimeout(resolve, timeoutMs);
    await promise;
    clearTimeout(timer);
    this.#waits.delete(resolve);
  }

  /** Ends all waits for the next seal. */
  endWaits(): void {
    for (const end of this.#waits) end();
  }

  /** Starts background sealing if a file is waiting, or else hurries it. */
  start(): void {
    this.#urgency[0] = this.backlog;
    this.#seals.start();
  }

  /**
   * Seals every pending file, without background sealing. After it fails, the next seal restarts a
   * partly sealed file from its beginning.
   * @param onSegment receives each segment once it is in the manifest.
   */
  async sealAll(
    onSegment: (entry: SegmentEntry) => void,
    settings: MakerSettings,
  ): Promise<void> {
    const make = (task: SegmentTask) => makeSegment(this.#storage, task, settings);
    for (const file of this.#files.pending) {
      const seal = { file, into: SEGMENT_TEMPORARY_FILES[0], first: null };
      for (const entry of await this.#seal(seal, make)) onSegment(entry);
      await this.#remove(file);
    }
  }

  /** Aborts a seal in progress. */
  async close(): Promise<void> {
    const closed = Promise.all([this.#seals.close(), this.#merges.close()]);
    await this.#options.sealing?.maker.close();
    await closed;
    await this.#dropBegun();
  }

  #sealJob(): Job | null {
    const [file] = this.#files.pending;
    const { report, sealing } = this.#options;
    if (sealing === undefined || file === undefined) return null;
    const { makeSegment } = sealing.maker;
    const run = async () => {
      const seal = this.#begun ?? { file, into: SEGMENT_TEMPORARY_FILES[0], first: null };
      assert(seal.file === file, "files must be sealed in order");
      this.#begun = this.#beginNext(seal, makeSegment);
      await this.#seal(seal, makeSegment);
      await this.#remove(file).catch(({ message }: Error) => {
        report(`${file.path}: sealed, but not removed until restart: ${message}`);
      });
    };
    return { failure: `${file.path}: not sealed`, run };
  }

  #mergeJob(): Job | null {
    const make = this.#options.sealing?.maker.makeIndex;
    const { sealed } = this.#files;
    if (make === undefined) return null;
    const path = sealed.leftover ?? sealed.nextMerge()?.run.path;
    if (path === undefined) return null;
    const run = () => mergeNext(this.#storage, sealed, make);
    return { failure: `${path}: not merged`, run };
  }

  /** Begins the seal of the second pending file if sealing is behind. */
  #beginNext({ file, into: used }: Seal, make: MakeSegment): Seal | null {
    const [, next] = this.#files.pending;
    if (next === undefined || this.backlog < UNTHROTTLED_BACKLOG) return null;
    const into = SEGMENT_TEMPORARY_FILES.find((path) => path !== used)!;
    const seal: Seal = { file: next, into, first: null };
    seal.first = removeIfThere(this.#storage, into)
      .then(() => make(this.#task(seal, 0, file.head!)));
    // A failure is thrown when it is the turn of the file.
    seal.first.catch(() => {});
    return seal;
  }

  async #dropBegun(): Promise<void> {
    const begun = this.#begun;
    this.#begun = null;
    if (begun === null) return;
    await begun.first?.catch(() => {});
    await removeIfThere(this.#storage, begun.into).catch(() => {});
  }

  /** Seals the oldest pending file and switches its readers to the segments. */
  async #seal(seal: Seal, make: MakeSegment): Promise<readonly SegmentEntry[]> {
    let segments;
    try {
      // If an earlier attempt could not remove its files, the reason is reported, not an EEXIST.
      if (seal.first === null) await this.#removeUnfinished(seal.into);
      segments = await this.#makeSegments(seal, make);
      const manifest = withSegments(this.#manifest, segments);
      await writeManifest(this.#storage, manifest);
      this.#manifest = manifest;
    } catch (error) {
      await this.#removeUnfinished(seal.into).catch(() => {});
      await this.#dropBegun();
      throw error;
    }
    this.#files.replaceOldest(segments);
    this.#merges.start();
    this.endWaits();
    return segments;
  }

  /** A failure may leave segments that are not in the manifest; the next attempt replaces them. */
  async #makeSegments(seal: Seal, make: MakeSegment): Promise<SegmentEntry[]> {
    const segments: SegmentEntry[] = [];
    const last = () => segments.at(-1) ?? this.#manifest.segments.at(-1);
    let startBytes = 0;
    while (last()?.last_event_id !== seal.file.lastEventId) {
      // Sealing is unthrottled while nothing is appended, so that a backlog goes soon.
      const { lastEventId } = this.#files.tail;
      this.#urgency[0] = lastEventId === this.#lastAppended ? 1 : this.backlog;
      this.#lastAppended = lastEventId;
      const previousHead = last()?.head ?? GENESIS_HEAD_HEX;
      const begun = startBytes === 0 ? seal.first : null;
      const { facts, endBytes } = await (begun ?? make(this.#task(seal, startBytes, previousHead)));
      assert(facts.previous_head === previousHead, "a segment must continue the chain");
      const path = segmentPath(facts);
      await this.#storage.rename(seal.into, path);
      segments.push({ ...facts, path, sealed_at: formatTimestamp(this.#options.clockMs()) });
      startBytes = endBytes;
    }
    await this.#storage.syncFolder(SEGMENTS_FOLDER);
    return segments;
  }

  #task({ file, into }: Seal, startBytes: number, previousHead: string): SegmentTask {
    const { path, endBytes } = file;
    return { path, startBytes, endBytes, previousHead, into, backlog: this.#urgency.buffer };
  }

  /**
   * Removes the temporary files from a failed seal, since the next seal needs their names. Fails if
   * the log's files were taken, so that no thread writes among those that took their place.
   */
  async #removeUnfinished(into: string): Promise<void> {
    await removeIfThere(this.#storage, into);
    await removeIfThere(this.#storage, MANIFEST_TEMPORARY_FILE);
  }

  /** Closes a sealed file once its active reads finish, then removes it. */
  async #remove({ file, path }: CommitFile): Promise<void> {
    await file.close();
    await this.#storage.remove(path);
    await this.#storage.syncFolder(PENDING_FOLDER);
  }
}
