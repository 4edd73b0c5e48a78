/**
 * Verifying segments apart from the rest of the log, which is how several can be verified at the
 * same time. What is told of a segment that is right by itself is little; of one that is not,
 * nothing: whoever takes it in its place in the log finds what is wrong, as if it came for the
 * first time.
 */
import { HistoryCheck } from "./history_check.ts";
import { type SegmentEntry, verifySegment } from "./segment_verify.ts";
import type { Storage } from "../storage/storage.ts";
import { areDistinct, IdentityList } from "./verify_identities.ts";

/** One that verifies segments. */
export interface SegmentChecking {
  /** Segments that are worth being asked for before the first answer. */
  readonly segmentsAhead: number;
  /**
   * Whether a segment is all that the manifest says, and right in all that can be seen without the
   * rest of the log.
   * @returns the identities of its batches, as `IdentityList` has them; null when it is not, or
   *   when that could not be found out.
   */
  check(entry: SegmentEntry): Promise<Uint32Array | null>;
  /** Resolves when nothing is read any more. */
  close(): Promise<void>;
}

/** See `SegmentChecking.check()`. @param chain whether to recompute all hashes. */
export async function checkSegment(
  storage: Storage,
  entry: SegmentEntry,
  chain: boolean,
): Promise<Uint32Array | null> {
  const identities = new IdentityList();
  const history = new HistoryCheck({
    chain,
    previousHead: entry.previous_head,
    onBatch: ({ source, batch_id }) => identities.add(source, batch_id),
  });
  try {
    await verifySegment(storage, entry, history);
  } catch {
    // Whatever it is, it is found again by the one who takes the segment in its place.
    return null;
  }
  const { words } = identities;
  return areDistinct(words) ? words : null;
}

/** A segment in its place in the log, and what was told of it. */
export interface CheckedSegment {
  entry: SegmentEntry;
  identities: Uint32Array | null;
}

/** Gives segments in their order, verified ahead of the one who takes them. */
export async function* checkAhead(
  entries: readonly SegmentEntry[],
  checking: SegmentChecking | null,
): AsyncGenerator<CheckedSegment, void> {
  const ahead: Promise<Uint32Array | null>[] = [];
  for (const [place, entry] of entries.entries()) {
    const end = Math.min(entries.length, place + (checking?.segmentsAhead ?? 0));
    while (place + ahead.length < end) ahead.push(checking!.check(entries[place + ahead.length]!));
    yield { entry, identities: await ahead.shift() ?? null };
  }
}
