/** Builds batches as clients submit them, and validates and submits them to a service. */
import { Buffer } from "node:buffer";
import { prepareBatch } from "../../src/event/batch_reader.ts";
import type { EventLogService } from "../../src/service/event_log.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";

export interface SubmittedEvent {
  stream: string;
  record_key: string;
  kind: string;
  occurred_at?: string;
  payload: unknown;
}

export interface SubmittedBatch {
  source: string;
  batch_id: string;
  events: SubmittedEvent[];
  stream_precondition?: { stream: string; expected_frontier: string | null };
}

/** A mutation requested by a client. The digest is computed from the batch if it is not known. */
export type Mutation =
  | { kind: "append"; batch: SubmittedBatch; digest?: string }
  | { kind: "retire"; source: string };

export function submittedEvent(stream = "orders", payload: unknown = null): SubmittedEvent {
  return { stream, record_key: "1", kind: "upserted", payload };
}

/** A batch with one event for each stream. */
export function submittedBatch(
  source: string,
  batchId: string,
  streams: readonly string[] = ["orders"],
): SubmittedBatch {
  const events = streams.map((stream) => submittedEvent(stream));
  return { source, batch_id: batchId, events };
}

/** The first event from a source that succeeds another, which was retired at `frontier`. */
export function lineageMarker(predecessor: string, frontier: string): SubmittedEvent {
  return {
    stream: "service.source_lineage",
    record_key: predecessor,
    kind: "source_succeeded",
    payload: { v: 1, predecessor_source: predecessor, predecessor_final_frontier: frontier },
  };
}

/** Submits a mutation immediately. */
export function answerTo(log: EventLogService, mutation: Mutation): Promise<Outcome> {
  return mutation.kind === "append"
    ? submit(log, mutation.batch)
    : outcomeOf(log.retire(mutation.source));
}

/** Submits a batch immediately. Rejection of an invalid batch is an outcome, too. */
export function submit(log: EventLogService, batch: SubmittedBatch): Promise<Outcome> {
  const append = async () => await log.append(prepareBatch(Buffer.from(JSON.stringify(batch))));
  return outcomeOf(append());
}
