/**
 * Verifies a log without changing it and without its lock: every file in log order, as one history.
 * Memory does not grow with the log.
 *
 * What cannot be seen without an anchor outside of the log: that its last commits are missing as a
 * whole. Such a log is what it was at an earlier time, and right.
 */
import { GENESIS_HEAD_HEX } from "../../event/chain.ts";
import { HistoryCheck } from "./history_check.ts";
import { MANIFEST_FILE, TAIL_FILE } from "../storage/file_names.ts";
import type { LineHashing } from "./line_hashing.ts";
import { SegmentError } from "../parquet/segment_error.ts";
import type { SegmentEntry } from "../segment/manifest.ts";
import { checkAhead, type CheckedSegment, type SegmentChecking } from "./segment_checking.ts";
import { openSegment } from "../segment/segment_reader.ts";
import { verifySegment } from "./segment_verify.ts";
import { isNotFound, type Storage } from "../storage/storage.ts";
import { BatchCheck } from "./verify_batches.ts";
import { verifyPending, verifyTail } from "./verify_commits.ts";
import { type FailureCode, VerifyFailure } from "./verify_failure.ts";
import { closeInventory, type Inventory, takeInventory } from "./verify_inventory.ts";

/** The report; wire names, in their order. Paths are relative to the log folder, sorted. */
export interface VerifyReport {
  ok: boolean;
  chain_checked: boolean;
  /** Segments examined, the one with the failure among them; so are the counts below. */
  segments_checked: number;
  pending_checked: number;
  events_checked: number;
  /** Files that mean nothing and that the next writer removes. */
  orphans: string[];
  /** What a writer was doing last and did not finish, or is doing. */
  remnants: string[];
  failure: FailureCode | null;
}

export interface Verification {
  report: VerifyReport;
  /** What does not hold; null when all does. */
  failure: VerifyFailure | null;
}

export interface VerifyOptions {
  /** Whether to recompute every content hash, event hash and the history chain. */
  chain: boolean;
  /** Starts one that recomputes hashes ahead, for `chain`; null where none is of use. */
  startHashing?: (logBytes: number) => LineHashing | null;
  /** Starts one that verifies segments ahead; null where none is of use. */
  startSegmentChecking?: (segments: readonly SegmentEntry[]) => SegmentChecking | null;
  /** Told after each batch or segment how many events have been checked. */
  onProgress?: (eventsChecked: number) => void;
  /** See `BatchCheck`. */
  identitySlotsMax?: number;
}

/**
 * Verifies the log in a folder that exists, up to the first failure in log order.
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
  try {
    const inventory = await takeInventory(storage);
    try {
      report.orphans = inventory.orphans;
      report.remnants = inventory.remnants;
      await checkLog(storage, inventory, options, report);
    } finally {
      await closeInventory(inventory);
    }
  } catch (failure) {
    if (!(failure instanceof VerifyFailure)) throw failure;
    report.failure = failure.code;
    return { report, failure };
  }
  report.ok = true;
  return { report, failure: null };
}

async function checkLog(
  storage: Storage,
  inventory: Inventory,
  { chain, startHashing, startSegmentChecking, onProgress, identitySlotsMax }: VerifyOptions,
  report: VerifyReport,
): Promise<void> {
  const batches = new BatchCheck(identitySlotsMax);
  const hashing = chain ? startHashing?.(logBytes(inventory)) ?? null : null;
  const checking = startSegmentChecking?.(inventory.manifest.segments) ?? null;
  const tellProgress = () => onProgress?.(history.eventsChecked);
  const history = new HistoryCheck({
    chain,
    hashing,
    onBatch(entry, path) {
      batches.add(entry, path);
      tellProgress();
    },
  });
  try {
    for await (const segment of checkAhead(inventory.manifest.segments, checking)) {
      report.segments_checked += 1;
      if (takeKnown(segment, history, batches)) tellProgress();
      else await verifySegment(storage, segment.entry, history);
    }
    await checkUnsealed(storage, inventory, history, report);
  } finally {
    report.events_checked = history.eventsChecked;
    await checking?.close();
    await hashing?.close();
  }
  await batches.finish(storage, inventory);
}

/** Takes in a segment by what was told of it; false when it has to be verified in its place. */
function takeKnown(
  { entry, identities }: CheckedSegment,
  history: HistoryCheck,
  batches: BatchCheck,
): boolean {
  const isRight = identities !== null && history.isNext(entry) && batches.addAll(identities);
  if (isRight) history.addSegment(entry);
  return isRight;
}

function logBytes({ manifest, pending, tail }: Inventory): number {
  const sizes = [
    ...manifest.segments.map(({ bytes }) => bytes),
    ...[...pending, ...(tail === null ? [] : [tail])].map(({ sizeBytes }) => sizeBytes),
  ];
  return sizes.reduce((sum, sizeBytes) => sum + sizeBytes, 0);
}

/** Pending files and tail, behind the segments. */
async function checkUnsealed(
  storage: Storage,
  inventory: Inventory,
  history: HistoryCheck,
  report: VerifyReport,
): Promise<void> {
  const { manifest, pending, tail } = inventory;
  let head = manifest.segments.at(-1)?.head ?? GENESIS_HEAD_HEX;
  for (const listed of pending) {
    report.pending_checked += 1;
    head = await verifyPending(listed, head, history);
  }
  if (tail === null) {
    assertMayMissTail(inventory);
    if (inventory.isStarted) report.remnants.push(TAIL_FILE);
    return;
  }
  const { isRemnant, rightBytes } = await verifyTail(tail, head, history);
  if (isRemnant) report.remnants.push(TAIL_FILE);
  if (pending.length === 0 && rightBytes === 0) await checkUnlisted(storage, inventory);
}

/** Only a rotation that was cut off before it made the next tail leaves none. */
function assertMayMissTail({ isStarted, pending }: Inventory): void {
  if (!isStarted || pending.length > 0) return;
  throw new VerifyFailure("tail_invalid", "is missing", { path: TAIL_FILE });
}

/**
 * No writer drops a segment from the manifest: where nothing follows the segments that it lists, a
 * segment that does shows that an older manifest was put back.
 */
async function checkUnlisted(
  storage: Storage,
  { manifest, unlisted }: Inventory,
): Promise<void> {
  const head = manifest.segments.at(-1)?.head ?? GENESIS_HEAD_HEX;
  for (const path of unlisted) {
    if (await previousHead(storage, path) !== head) continue;
    const what = `does not list the segment that follows, ${path}`;
    throw new VerifyFailure("manifest_invalid", what, { path: MANIFEST_FILE });
  }
}

/** Chain head before a segment; null when the file is none. */
async function previousHead(storage: Storage, path: string): Promise<string | null> {
  try {
    const segment = await openSegment(storage, path);
    await segment.close();
    return segment.metadata.previous_head;
  } catch (error) {
    if (error instanceof SegmentError || isNotFound(error)) return null;
    throw error;
  }
}
