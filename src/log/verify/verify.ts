/**
 * Verifies a log without changing or locking it. Checks every file in log order, as one history.
 * Memory grows by 16 bytes per batch.
 *
 * Without an anchor outside the log, the loss of complete commits at its end can't be detected,
 * since the rest is a valid earlier state.
 */
import { availableParallelism } from "node:os";
import { sumOf } from "../../sum.ts";
import { joined } from "../index/entries.ts";
import { ThreadPool } from "../../threads/thread_pool.ts";
import { MANIFEST_FILE, TAIL_FILE } from "../storage/file_names.ts";
import type { Storage } from "../storage/storage.ts";
import { verifyCommits } from "./commit_file_verifier.ts";
import { type FailureCode, VerifyFailure } from "../storage/errors.ts";
import { type BatchIdentity, HistoryCheck } from "../wal/history_check.ts";
import {
  closeFiles,
  findUnlisted,
  type Inventory,
  type ListedFile,
  takeInventory,
} from "./inventory.ts";
import { SealedHistory } from "../segment/sealed_history.ts";
import { checkRun } from "./run_check.ts";
import type { ExpectedSegment } from "../segment/segment_metadata.ts";
import { batchHash, type CheckedSegment, checkSegment, verifySegment } from "./segment_verifier.ts";
import type { SegmentRequest } from "./segment_worker.ts";

/** Maximum number of threads that verify segments. Each thread uses 32 to 64 MiB. */
const THREADS_MAX = 8;

/** Verifying a log smaller than this takes less time than starting threads. */
const SEGMENT_THREADS_BYTES_MIN = 8 * 1024 * 1024;

/** A damaged file, or one that could not be read. */
export interface Damage {
  code: FailureCode | "not checked";
  /** Begins with the path of the file. */
  message: string;
}

/** The report in its wire format. Paths are sorted and relative to the log directory. */
export interface VerifyReport {
  ok: boolean;
  chain_checked: boolean;
  /** Segments checked, including one that failed; the same applies to the counts below. */
  segments_checked: number;
  pending_checked: number;
  events_checked: number;
  /** Files not part of the log. The next writer keeps segments that no pending file covers. */
  orphans: string[];
  /** Unfinished writes, which may still be in progress. */
  remnants: string[];
  failure: Damage["code"] | null;
}

export interface Verification {
  report: VerifyReport;
  /** The first failure in log order; null if all checks pass. */
  failure: Damage | null;
  others: Damage[];
  /** The last event, and the chain head after it, if all checks pass; null for an empty log. */
  lastEventId: string | null;
  head: string | null;
}

export interface VerifyOptions {
  /** Whether to recompute every content hash, event hash and the history chain. */
  chain: boolean;
  /** The log directory, which verification threads open. If absent, no threads are started. */
  folder?: string;
  /** Called after each file. Sealed events are checked first. */
  onProgress?: (eventsChecked: number, eventsSealed: number) => void;
}

/**
 * Verifies the log in an existing directory.
 * @throws {UnsupportedFormatError} if a newer program wrote the log.
 */
export async function verifyLog(storage: Storage, options: VerifyOptions): Promise<Verification> {
  return await new LogVerifier(storage, options).run();
}

class LogVerifier {
  readonly #storage: Storage;
  readonly #options: VerifyOptions;
  readonly #report: VerifyReport;
  /** Hashes of all batches up to the first failure, by file. */
  readonly #hashes: BigUint64Array[] = [];
  /** Hashes of the batches in the file being checked, if it is not a segment. */
  #unsealed: bigint[] = [];
  /** In log order. */
  readonly #damages: Damage[] = [];
  #eventsSealed = 0;
  #end: Pick<Verification, "lastEventId" | "head"> = { lastEventId: null, head: null };

  constructor(storage: Storage, options: VerifyOptions) {
    this.#storage = storage;
    this.#options = options;
    this.#report = {
      ok: false,
      chain_checked: options.chain,
      segments_checked: 0,
      pending_checked: 0,
      events_checked: 0,
      orphans: [],
      remnants: [],
      failure: null,
    };
  }

  async run(): Promise<Verification> {
    const inventory = await this.#check(MANIFEST_FILE, () => takeInventory(this.#storage));
    if (inventory !== null) {
      try {
        await this.#checkFiles(inventory);
      } finally {
        await closeFiles(inventory);
      }
    }
    const [failure = null, ...others] = this.#damages;
    const report = { ...this.#report, ok: failure === null, failure: failure?.code ?? null };
    return { report, failure, others, ...this.#end };
  }

  get #isIntact(): boolean {
    return this.#damages.length === 0;
  }

  async #checkFiles(inventory: Inventory): Promise<void> {
    this.#report.orphans = inventory.orphans;
    this.#report.remnants = inventory.remnants;
    this.#eventsSealed = sumOf(inventory.manifest.segments, ({ events }) => events);
    await this.#checkSegments(inventory);
    await this.#checkUnsealed(inventory);
    if (this.#isIntact) await this.#checkRuns(inventory);
    const sorted = joined(this.#hashes).sort();
    const repeated = new Set(sorted.filter((hash, at) => hash === sorted[at - 1]));
    if (repeated.size > 0) await this.#checkDuplicates(inventory, repeated);
  }

  async #checkSegments({ manifest: { segments } }: Inventory): Promise<void> {
    const { folder, chain } = this.#options;
    const threads = folder === undefined ? null : segmentThreads(segments);
    // A segment that a thread could not verify is verified here.
    const checks = segments.map((expected) =>
      threads?.request({ folder: folder!, chain, expected }).catch(() => null)
    );
    try {
      for (const [place, expected] of segments.entries()) {
        await this.#check(expected.path, async () => {
          const { events, hashes, failure } = await checks[place] ??
            await checkSegment(this.#storage, expected, chain);
          if (this.#isIntact) {
            this.#report.segments_checked += 1;
            this.#addEvents(events);
            this.#hashes.push(hashes);
          }
          if (failure !== null) this.#damages.push(failure);
        });
      }
    } finally {
      await threads?.close();
    }
  }

  async #checkRuns({ manifest, runs }: Inventory): Promise<void> {
    const sealed = new SealedHistory(this.#storage);
    sealed.add(manifest.segments);
    for (const run of runs) {
      const isIntact = await this.#check(run.path, () => checkRun(this.#storage, run, sealed));
      if (isIntact === false) this.#report.remnants.push(run.path);
    }
    await sealed.close();
  }

  async #checkUnsealed(inventory: Inventory): Promise<void> {
    const { manifest, pending, tail, isStarted } = inventory;
    const isSealedIntact = this.#isIntact;
    const last = manifest.segments.at(-1);
    const history = new HistoryCheck({
      chain: this.#options.chain,
      ...(last && { previousHead: last.head, lastEventId: last.last_event_id }),
      onBatch: (batch) => void this.#unsealed.push(batchHash(batch)),
    });
    for (const listed of pending) {
      if (this.#isIntact) this.#report.pending_checked += 1;
      await this.#checkCommits(listed, history);
    }
    const isRemnant = tail === null || await this.#checkCommits(tail, history);
    if (inventory.lacksTail) {
      this.#damages.push(new VerifyFailure("tail_invalid", `${TAIL_FILE}: is missing`));
    }
    if (!isSealedIntact) return;
    if (isStarted && isRemnant && this.#isIntact) this.#report.remnants.push(TAIL_FILE);
    const { lastEventId, head } = history;
    this.#end = { lastEventId, head };
    const failure = findUnlisted(inventory, history);
    // This may also be the reason for a failure in the other files.
    if (failure !== null) this.#damages.unshift(failure);
  }

  /** Checks a file as the continuation of `next`; after the first failure, checks it on its own. */
  async #checkCommits(listed: ListedFile, next: HistoryCheck): Promise<boolean | null> {
    const history = this.#isIntact
      ? next
      : new HistoryCheck({ chain: next.chain, previousHead: null });
    const eventsBefore = next.eventsChecked;
    const result = await this.#check(listed.path, () => verifyCommits(listed, history));
    this.#hashes.push(BigUint64Array.from(this.#unsealed));
    this.#unsealed = [];
    this.#addEvents(next.eventsChecked - eventsBefore);
    return result;
  }

  /** @returns null if the file is damaged. */
  async #check<Result>(path: string, verify: () => Promise<Result>): Promise<Result | null> {
    try {
      return await verify();
    } catch (error) {
      if (error instanceof VerifyFailure) this.#damages.push(error);
      else if (this.#isIntact) throw error;
      else this.#damages.push({ code: "not checked", message: `${path}: ${error}` });
      return null;
    }
  }

  #addEvents(events: number): void {
    this.#report.events_checked += events;
    this.#options.onProgress?.(this.#report.events_checked, this.#eventsSealed);
  }

  /**
   * Rereads the log to compare the names of batches with equal hashes. A batch committed twice
   * before the first failure replaces that failure.
   */
  async #checkDuplicates(
    { manifest, pending, tail }: Inventory,
    repeated: ReadonlySet<bigint>,
  ): Promise<void> {
    const names = new Set<string>();
    const onBatch = (batch: BatchIdentity) => {
      if (!repeated.has(batchHash(batch))) return;
      const { source, batch_id } = batch;
      const name = `batch ${JSON.stringify(batch_id)} of source ${JSON.stringify(source)}`;
      const what = `${name} is committed twice`;
      if (names.has(name)) throw history.failure(what, {}, "idempotency_invalid");
      names.add(name);
    };
    const history = new HistoryCheck({ chain: this.#options.chain, onBatch });
    try {
      for (const expected of manifest.segments) {
        await verifySegment(this.#storage, expected, history);
      }
      for (const listed of [...pending, ...tail ? [tail] : []]) {
        await verifyCommits(listed, history);
      }
    } catch (error) {
      if (!(error instanceof VerifyFailure)) throw error;
      // Any other failure has already been recorded.
      if (error.code !== "idempotency_invalid") return;
      this.#damages.unshift(error);
    }
  }
}

/**
 * Returns one thread per core to verify segments, which are independent of each other; null if they
 * don't pay off. This thread verifies none, since its young generation cannot be limited.
 */
function segmentThreads(
  segments: readonly ExpectedSegment[],
): ThreadPool<SegmentRequest, CheckedSegment> | null {
  const threadsMax = Math.min(availableParallelism(), segments.length, THREADS_MAX);
  const sizeBytes = sumOf(segments, ({ bytes }) => bytes);
  if (threadsMax < 2 || sizeBytes < SEGMENT_THREADS_BYTES_MIN) return null;
  return new ThreadPool(new URL("./segment_worker.ts", import.meta.url), { threadsMax });
}
