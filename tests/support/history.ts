/** What clients did to a log and were answered, and what the log holds in the end. */
import type { StreamSummary } from "../../src/event/types.ts";
import type { CommittedEvent } from "../../src/event/verify_event.ts";
import type { Outcome } from "./outcome.ts";
import type { SubmittedBatch } from "./submitted.ts";

/** A mutation that a client asks for. */
export type Mutation =
  | { kind: "append"; batch: SubmittedBatch }
  | { kind: "retire"; source: string };

/** A mutation with its answer. Times are places in the one order of what clients do and see. */
export interface Call {
  mutation: Mutation;
  invokedAt: number;
  answeredAt: number;
  /** Null when there was no answer. */
  outcome: Outcome | null;
}

export interface History {
  calls: Call[];
  events: CommittedEvent[];
  streams: StreamSummary[];
}

/** A batch as the log holds it. */
export interface LoggedBatch {
  source: string;
  batchId: string;
  events: CommittedEvent[];
}
