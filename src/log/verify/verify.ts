/**
 * Verifies a log without changing it and without its lock: every file in log order, as one history.
 * Memory does not grow with the log.
 *
 * Without an anchor outside of the log it can't be seen that its last commits are missing as a
 * whole: such a log is a valid earlier one.
 */
import { GENESIS_HEAD_HEX } from "../../event/chain.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { SegmentEntry } from "../segment/manifest.ts";
import { openSegment } from "../segment/segment_reader.ts";
import { MANIFEST_FILE, TAIL_FILE } from "../storage/file_names.ts";
import { isNotFound, type Storage } from "../storage/storage.ts";
import { type VerifiedTail, verifyPending, verifyTail } from "./commit_file_verifier.ts";
import { batchHash, DuplicateBatches } from "./duplicate_batches.ts";
import { type FailureCode, VerifyFailure } from "./failure.ts";
import { HistoryCheck } from "./history_check.ts";
import { closeInventory, type Inventory, takeInventory } from "./inventory.ts";
import { checkAhead, type SegmentChecker } from "./segment_threads.ts";
import { verifySegment } from "./segment_verifier.ts";

/** The report; wire names, in their order. Paths are relative to the log folder, sorted. */
export interface VerifyReport {
  ok: boolean;
  chain_checked: boolean;
  /** Segments examined, including the one with the failure; so are the counts below. */
  segments_checked: number;
  pending_checked: number;
  events_checked: number;
  /** Meaningless files that the next writer removes. */
  orphans: string[];
  /** Unfinished work of a writer, which may be in progress. */
  remnants: string[];
  failure: FailureCode | null;
}

/** A damaged file. */
export interface Damage {
  /** `not checked` when the file could not be read. */
  code: FailureCode | "not checked";
  /** Begins with the path of the file. */
  message: string;
}

export interface Verification {
  report: VerifyReport;
  /** The first check in log order that does not hold; null when all do. */
  failure: VerifyFailure | null;
  /** Other files that are damaged, whatever comes before them. */
  others: Damage[];
}

export interface VerifyOptions {
  /** Whether to recompute every content hash, event hash and the history chain. */
  chain: boolean;
  /** Starts the threads that verify segments ahead; null where they don't help. */
  startChecker?: (segments: readonly SegmentEntry[]) => SegmentChecker | null;
  /** Called after each batch or segment. */
  onProgress?: (eventsChecked: number) => void;
  /** See `DuplicateBatches`. */
  batchHashesMax?: number;
}

/**
 * Verifies the log in a folder that exists.
 * @throws {UnsupportedFormatError} a newer program wrote the folder.
 */
export async function verifyLog(storage: Storage, options: VerifyOptions): Promise<Verification> {
  const report: VerifyReport = {
    ok: false,
    chain_checked: options.chain,
    segments_checked: 0,
    pending_checked: 0,
    events_checked: 0,
    orphans: [],
    remnants: [],
    failure: null,
  };
  let verifier: LogVerifier;
  try {
    const inventory = await takeInventory(storage);
    report.orphans = inventory.orphans;
    report.remnants = inventory.remnants;
    verifier = new LogVerifier(storage, inventory, options, report);
  } catch (failure) {
    if (!(failure instanceof VerifyFailure)) throw failure;
    report.failure = failure.code;
    return { report, failure, others: [] };
  }
  await verifier.run();
  const { failure, others } = verifier;
  report.failure = failure?.code ?? null;
  report.ok = failure === null;
  return { report, failure, others };
}

class LogVerifier {
  readonly #storage: Storage;
  readonly #inventory: Inventory;
  readonly #options: VerifyOptions;
  readonly #report: VerifyReport;
  readonly #duplicates: DuplicateBatches;
  /** All of the log up to the first failure. */
  readonly #history: HistoryCheck;
  failure: VerifyFailure | null = null;
  readonly others: Damage[] = [];

  constructor(
    storage: Storage,
    inventory: Inventory,
    options: VerifyOptions,
    report: VerifyReport,
  ) {
    this.#storage = storage;
    this.#inventory = inventory;
    this.#options = options;
    this.#report = report;
    this.#duplicates = new DuplicateBatches(storage, inventory, options.batchHashesMax);
    this.#history = new HistoryCheck({
      chain: options.chain,
      onBatch: (batch) => {
        this.#duplicates.add(batchHash(batch));
        this.#tellProgress();
      },
    });
  }

  /** Closes the files of the inventory. */
  async run(): Promise<void> {
    try {
      await this.#checkSegments();
      await this.#checkPending();
      await this.#checkDuplicates();
    } finally {
      await closeInventory(this.#inventory);
    }
    this.#report.events_checked = this.#history.eventsChecked;
  }

  async #checkSegments(): Promise<void> {
    const { segments } = this.#inventory.manifest;
    const checker = this.#options.startChecker?.(segments) ?? null;
    try {
      for await (const [expected, hashes] of checkAhead(segments, checker)) {
        if (this.failure === null) this.#report.segments_checked += 1;
        if (this.#isKnown(expected, hashes)) continue;
        const verify = (history: HistoryCheck) => verifySegment(this.#storage, expected, history);
        await this.#check(expected.path, verify);
      }
    } finally {
      await checker?.close();
    }
  }

  /** Whether a segment needs no more checks: it is right and comes next. Adds it then. */
  #isKnown(expected: SegmentEntry, hashes: BigUint64Array | null): boolean {
    if (hashes === null) return false;
    if (this.failure !== null) return true;
    if (!this.#history.isNext(expected)) return false;
    this.#history.addSegment(expected);
    hashes.forEach((hash) => this.#duplicates.add(hash));
    this.#tellProgress();
    return true;
  }

  async #checkPending(): Promise<void> {
    const { manifest, pending, tail, isStarted } = this.#inventory;
    const last = manifest.segments.at(-1);
    let head: string | null = this.failure === null ? last?.head ?? GENESIS_HEAD_HEX : null;
    for (const listed of pending) {
      if (this.failure === null) this.#report.pending_checked += 1;
      head = await this.#check(listed.path, (history) => verifyPending(listed, head, history));
    }
    const verified = await this.#check(TAIL_FILE, async (history) => {
      if (tail === null) return assertMayMissTail(this.#inventory);
      return await verifyTail(tail, head, history);
    });
    if (this.failure !== null) return;
    if (isStarted && verified?.isRemnant) this.#report.remnants.push(TAIL_FILE);
    if (pending.length === 0 && verified?.isEmpty) {
      await this.#check(MANIFEST_FILE, () => checkUnlisted(this.#storage, this.#inventory));
    }
  }

  /** A batch committed twice before the first failure becomes the first failure. */
  async #checkDuplicates(): Promise<void> {
    const duplicate = await this.#duplicates.find();
    if (duplicate === null) return;
    if (this.failure !== null) this.others.unshift(this.failure);
    this.failure = duplicate;
  }

  /**
   * Checks a file as the next one of the log; after the first failure by itself.
   * @returns null when it is damaged.
   */
  async #check<Result>(
    path: string,
    verify: (history: HistoryCheck) => Promise<Result>,
  ): Promise<Result | null> {
    const { chain } = this.#options;
    const isNext = this.failure === null;
    try {
      return await verify(isNext ? this.#history : new HistoryCheck({ chain, previousHead: null }));
    } catch (error) {
      const isFailure = error instanceof VerifyFailure;
      if (isNext && !isFailure) throw error;
      if (!isFailure) this.others.push({ code: "not checked", message: `${path}: ${error}` });
      else if (isNext) this.failure = error;
      else this.others.push(error);
      return null;
    }
  }

  #tellProgress(): void {
    this.#options.onProgress?.(this.#history.eventsChecked);
  }
}

/** Only a rotation interrupted before it makes the next tail leaves none. */
function assertMayMissTail({ isStarted, pending }: Inventory): VerifiedTail {
  if (isStarted && pending.length === 0) {
    throw new VerifyFailure("tail_invalid", "is missing", { path: TAIL_FILE });
  }
  return { isRemnant: true, isEmpty: false };
}

/**
 * No writer drops a segment from the manifest. When no unsealed events follow the listed segments,
 * an unlisted segment that follows them shows that an older manifest was restored.
 */
async function checkUnlisted(storage: Storage, { manifest, unlisted }: Inventory): Promise<void> {
  const head = manifest.segments.at(-1)?.head ?? GENESIS_HEAD_HEX;
  for (const path of unlisted) {
    if (await previousHead(storage, path) !== head) continue;
    const what = `does not list the segment that follows, ${path}`;
    throw new VerifyFailure("manifest_invalid", what, { path: MANIFEST_FILE });
  }
}

/** Chain head before a segment; null when the file is not a segment. */
async function previousHead(storage: Storage, path: string): Promise<string | null> {
  try {
    const segment = await openSegment(storage, path);
    await segment.close();
    return (await segment.footer()).metadata.previous_head;
  } catch (error) {
    if (error instanceof SegmentError || isNotFound(error)) return null;
    throw error;
  }
}
