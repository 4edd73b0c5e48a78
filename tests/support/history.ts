/** Mutations that clients request, and the batches in a log. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { isEventId } from "../../src/event/event_id.ts";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { Mutation } from "./submitted.ts";

export type { Mutation } from "./submitted.ts";

/** A batch as stored in the log. */
export interface LoggedBatch {
  source: string;
  batchId: string;
  events: CommittedEvent[];
}

/** Whether the response to `later` may depend on the outcome of `earlier`. */
export function mayDepend(later: Mutation, earlier: Mutation): boolean {
  const sources = [sourceOf(later), markedPredecessor(later)];
  if (earlier.kind === "retire") return sources.includes(earlier.source);
  if (sourceOf(earlier) !== sourceOf(later)) return false;
  if (later.kind === "retire" || sources[1] !== undefined) return true;
  const precondition = later.batch.stream_precondition;
  return earlier.batch.batch_id === later.batch.batch_id ||
    markedPredecessor(earlier) !== undefined ||
    earlier.batch.events.some(({ stream }) => stream === precondition?.stream);
}

function sourceOf(mutation: Mutation): string {
  return mutation.kind === "retire" ? mutation.source : mutation.batch.source;
}

/** The source that a batch's lineage marker names. */
function markedPredecessor(mutation: Mutation): string | undefined {
  if (mutation.kind === "retire") return undefined;
  const [first] = mutation.batch.events;
  return first?.stream === "service.source_lineage" ? first.record_key : undefined;
}

const OBSERVED_AT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * Groups consecutive events in a log into batches, each of which must be contiguous and unique.
 * @param frontier id of the event that precedes `events`.
 */
export function loggedBatches(events: readonly CommittedEvent[], frontier = ""): LoggedBatch[] {
  const batches: LoggedBatch[] = [];
  const identities = new Set<string>();
  let before = frontier;
  for (const event of events) {
    const { event_id: eventId, source, batch_id: batchId } = event;
    assert.ok(isEventId(eventId) && before < eventId, `ids increase: ${before}, ${eventId}`);
    assert.match(event.observed_at, OBSERVED_AT);
    before = eventId;
    const last = batches.at(-1);
    if (last?.source === source && last.batchId === batchId) {
      assert.equal(event.observed_at, last.events[0]!.observed_at, "a batch has one commit time");
      last.events.push(event);
    } else {
      const identity = `${source} ${batchId}`;
      assert.ok(!identities.has(identity), `in the log twice: ${identity}`);
      identities.add(identity);
      batches.push({ source, batchId, events: [event] });
    }
  }
  return batches;
}

/** Whether a batch in the log is exactly what a mutation commits. */
export function isBatchOf(mutation: Mutation, { source, batchId, events }: LoggedBatch): boolean {
  if (mutation.kind === "retire") {
    if (source !== "system") return false;
    const { source: retired, final_frontier } = events[0]!.payload as Record<string, unknown>;
    return mutation.source === retired && events.length === 1 &&
      batchId === `service/retire/${retired}/${final_frontier}`;
  }
  const { batch } = mutation;
  return source === batch.source && batchId === batch.batch_id &&
    isDeepStrictEqual(batch.events, events.map(submittedPart));
}

function submittedPart({ stream, record_key, kind, occurred_at, payload }: CommittedEvent) {
  return { stream, record_key, kind, ...(occurred_at !== undefined && { occurred_at }), payload };
}
