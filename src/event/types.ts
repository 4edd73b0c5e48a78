/** Shapes that the layers hand to each other. Wire shapes are named as on the wire. */
import type { EncodedEvents } from "./event_stamping.ts";

/** A validated submitted event whose payload is canonical. */
export interface PreparedEvent {
  stream: string;
  recordKey: string;
  kind: string;
  /** As spelled by the client. */
  occurredAt: string | undefined;
  /** RFC 8785 text of the payload. */
  payload: string;
}

/** What must hold of one stream for a batch to be committed. */
export interface StreamPrecondition {
  /** The stream, of the batch's source; every event of the batch must target it. */
  stream: string;
  /** Latest event id of the stream; null when it has no committed event. */
  expectedFrontier: string | null;
}

/** What a source's first batch declares about the retired source it continues. */
export interface LineageMarker {
  predecessorSource: string;
  /** Event id that must be the predecessor's final one. */
  predecessorFinalFrontier: string;
}

/** A validated batch, its events one by one. */
export interface CheckedBatch {
  source: string;
  batchId: string;
  events: PreparedEvent[];
  precondition: StreamPrecondition | undefined;
  /** Declared by the first event when it lies in the lineage stream. */
  lineage: LineageMarker | undefined;
}

/** A validated batch: all that the writer needs, nothing that it must check again. */
export interface PreparedBatch extends Omit<CheckedBatch, "events"> {
  /**
   * SHA-256, 64 lowercase hex digits, of the RFC 8785 text of
   * `{v, source, events: [{stream, record_key, kind, content_hash, occurred_at?}]}`: what makes two
   * submissions under one batch id the same.
   */
  batchDigest: string;
  events: EncodedEvents;
}

/** An event as a client submits it. */
export interface SubmittedEvent {
  /** `[a-z0-9_][a-z0-9_.-]*`, at most 128 bytes. */
  stream: string;
  /** What the event is about: not empty, at most 1,024 bytes of UTF-8. */
  record_key: string;
  /** `upserted`, `deleted`, or what the source defines: not empty, at most 128 bytes of UTF-8. */
  kind: string;
  /**
   * UTC time `YYYY-MM-DDTHH:MM:SSZ` with up to nine digits of fraction, as the source reports it.
   */
  occurred_at?: string;
  /** Any JSON value, at most 128 containers deep. */
  payload: unknown;
}

/** A committed event, as replay and follow return it. */
export interface CommittedEvent {
  /** UUIDv7; ids increase in the order of the log. */
  event_id: string;
  /** Source of the batch. */
  source: string;
  /** As submitted. */
  stream: string;
  /** As submitted. */
  record_key: string;
  /** As submitted. */
  kind: string;
  /** As submitted; absent when it was not. */
  occurred_at?: string;
  /** UTC time of the commit, the same for all events of a batch. */
  observed_at: string;
  /** As submitted: the same JSON value, though its text may have been spelled otherwise. */
  payload: unknown;
  /** SHA-256 of the payload's RFC 8785 text, 64 lowercase hex digits. */
  content_hash: string;
  /** Id of the batch within its source. */
  batch_id: string;
  /** SHA-256 of the event without its payload, 64 lowercase hex digits. */
  event_hash: string;
}

/** Answer to a committed or repeated batch. */
export interface Receipt {
  /** `duplicate` repeats the receipt of the batch committed before. */
  status: "committed" | "duplicate";
  /** SHA-256 over what the batch says, 64 lowercase hex digits. */
  batch_digest: string;
  /** Number of events in the batch. */
  events: number;
  /** Id of the batch's first event. */
  first_event_id: string;
  /** Id of the batch's last event. */
  last_event_id: string;
}

/** Answer to a retirement, the first or a repeated one. */
export interface RetirementReceipt {
  /** Version of this shape. */
  v: 1;
  /** `already_retired` repeats the answer to the first retirement. */
  status: "retired" | "already_retired";
  /** The retired source. */
  source: string;
  /** Last event of the source. */
  final_frontier: string;
  /** The event that records the retirement. */
  retirement_event_id: string;
}

/** One row of the enumeration of streams. */
export interface StreamSummary {
  /** The stream's source. */
  source: string;
  /** Its name within the source. */
  stream: string;
  /** Its last event. */
  frontier_event_id: string;
  /** Its events. */
  event_count: number;
}

/** The reasons for which a service ends follow responses. */
export type FollowEndReason =
  | "shutdown"
  | "writer_poisoned"
  | "session_closed"
  | "buffer_exceeded"
  | "replay_failed";
