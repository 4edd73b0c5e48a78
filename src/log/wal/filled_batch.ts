/**
 * A large batch whose lines are complete before its turn to be committed: it has its ids, its time
 * and its event hashes, and only the chain is still to be made. So what others commit meanwhile
 * does not wait for that work.
 *
 * Invariant: its ids are set aside (`EventIdSource.reserve()`), so whatever is committed before it
 * has lesser ones.
 */
import {
  type EncodedEvents,
  type FillableEvents,
  fillEvents,
  type FillValues,
} from "../../event/encoded_events.ts";
import type { PreparedBatch } from "../../event/types.ts";
import { inTurns } from "../../io_turn.ts";
import { COMMIT_SLICE_EVENTS } from "../../limits.ts";

export interface FilledBatch {
  batch: PreparedBatch;
  /** One for each event. */
  eventIds: readonly string[];
  /** 64 lowercase hex digits of each event, one after the other. */
  eventHashes: string;
}

/**
 * Gives the events of a batch their ids, their time and their hashes while others are committed;
 * returns `FilledBatch.eventHashes`.
 * @throws {LostBatchError} the batch is gone; nothing else is amiss.
 */
export type EventFiller = (events: EncodedEvents, values: FillValues) => Promise<string>;

/** Fills on this thread, giving way to others. */
export function fillInTurns(events: FillableEvents, values: FillValues): Promise<string> {
  return inTurns(fillInSlices(events, values));
}

/** Fills at once. */
export function fillAll(events: FillableEvents, values: FillValues): string {
  const slices = fillInSlices(events, values);
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
  }
}

/** With a pause each time that COMMIT_SLICE_EVENTS have been filled. */
function* fillInSlices(events: FillableEvents, values: FillValues): Generator<void, string> {
  let eventHashes = "";
  const chain = { append: (eventHash: string) => void (eventHashes += eventHash) };
  for (let first = 0; first < events.count; first += COMMIT_SLICE_EVENTS) {
    if (first > 0) yield;
    const end = Math.min(events.count, first + COMMIT_SLICE_EVENTS);
    fillEvents(events, { ...values, chain }, first, end);
  }
  return eventHashes;
}
