/** Types of requests and responses, which browsers use too: nothing here refers to a runtime. */

/** A condition on one stream that must hold for a batch to be committed. */
export interface StreamPrecondition {
  /** A stream of the batch's source; every event in the batch must target it. */
  stream: string;
  /** Id of the stream's latest event; null if the stream is empty. */
  expectedFrontier: string | null;
}

/** An event as a client submits it. */
export interface SubmittedEvent {
  /** `[a-z0-9_][a-z0-9_.-]*`, at most 128 bytes. */
  stream: string;
  /** Key of the changed record: 1 to 1,024 bytes of UTF-8. */
  record_key: string;
  /** `upserted`, `deleted` or a kind that the source defines: 1 to 128 bytes of UTF-8. */
  kind: string;
  /** UTC time `YYYY-MM-DDTHH:MM:SSZ` with up to nine fractional digits, set by the source. */
  occurred_at?: string;
  /** Any JSON value, nested at most 128 levels deep. */
  payload: unknown;
}

/** A committed event as returned by replay and follow, with a payload of type `Payload`. */
export interface CommittedEvent<Payload = unknown> {
  /** UUIDv7; ids increase in log order. */
  event_id: string;
  /** Source of the batch. */
  source: string;
  /** As submitted. */
  stream: string;
  /** As submitted. */
  record_key: string;
  /** As submitted. */
  kind: string;
  /** As submitted; absent if it was absent. */
  occurred_at?: string;
  /** UTC time of the commit, the same for all events in a batch. */
  observed_at: string;
  /** The submitted JSON value, possibly formatted differently. */
  payload: Payload;
  /** SHA-256 of the payload in RFC 8785 form, 64 lowercase hex digits. */
  content_hash: string;
  /** Id of the batch within its source. */
  batch_id: string;
  /** SHA-256 of the event without its payload, 64 lowercase hex digits. */
  event_hash: string;
}

/** Response to a committed or repeated batch. */
export interface Receipt {
  /** `duplicate`: the batch was already committed, and this is its original receipt. */
  status: "committed" | "duplicate";
  /** SHA-256 of the batch's content, 64 lowercase hex digits. */
  batch_digest: string;
  /** Number of events in the batch. */
  events: number;
  /** Id of the batch's first event. */
  first_event_id: string;
  /** Id of the batch's last event. */
  last_event_id: string;
}

/** Response to a first or repeated retirement. */
export interface RetirementReceipt {
  /** Version of this type. */
  v: 1;
  /** `already_retired`: the source was already retired, and this is its original receipt. */
  status: "retired" | "already_retired";
  /** The retired source. */
  source: string;
  /** Id of the source's last event. */
  final_frontier: string;
  /** Id of the event that records the retirement. */
  retirement_event_id: string;
}

/** An entry in the stream listing. */
export interface StreamSummary {
  /** The stream's source. */
  source: string;
  /** Name of the stream within its source. */
  stream: string;
  /** Id of the stream's last event. */
  frontier_event_id: string;
  /** Number of events in the stream. */
  event_count: number;
}

/** Why a service ends a follow response. */
export type FollowEndReason =
  | "shutdown"
  | "writer_poisoned"
  | "session_closed"
  | "buffer_exceeded"
  | "replay_failed";
