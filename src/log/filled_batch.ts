/**
 * A large batch whose lines are complete before its turn to be committed: it has its ids, its time
 * and its event hashes, and only the chain is still to be made. So what others commit meanwhile
 * does not wait for that work.
 *
 * Invariant: its ids are set aside (`EventIdSource.reserve()`), so whatever is committed before it
 * has lesser ones.
 */
import { fillEvents } from "../event/encoded_events.ts";
import { formatTimestamp } from "../event/timestamp.ts";
import type { PreparedBatch } from "../event/types.ts";
import { COMMIT_SLICE_EVENTS } from "../limits.ts";

export interface FilledBatch {
  batch: PreparedBatch;
  /** One for each event. */
  eventIds: readonly string[];
  /** Of each event, 64 lowercase hex digits. */
  eventHashes: readonly string[];
}

/** Fills a batch, with a pause each time that COMMIT_SLICE_EVENTS have been filled. */
export function* fillInSlices(
  batch: PreparedBatch,
  eventIds: readonly string[],
  nowMs: number,
): Generator<void, FilledBatch> {
  const { events } = batch;
  const eventHashes: string[] = [];
  const chain = { append: (eventHash: string) => void eventHashes.push(eventHash) };
  const values = { eventIds, observedAt: formatTimestamp(nowMs), chain };
  for (let first = 0; first < events.count; first += COMMIT_SLICE_EVENTS) {
    if (first > 0) yield;
    fillEvents(events, values, first, Math.min(events.count, first + COMMIT_SLICE_EVENTS));
  }
  return { batch, eventIds, eventHashes };
}
