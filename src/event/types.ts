/** Shapes that the layers hand to each other. Wire shapes are named as on the wire. */

/** A validated submitted event whose payload is canonical and hashed. */
export interface PreparedEvent {
  stream: string;
  recordKey: string;
  kind: string;
  /** As spelled by the client. */
  occurredAt: string | undefined;
  /** RFC 8785 text of the payload. */
  payload: string;
  /** SHA-256 of the payload text in UTF-8, 64 lowercase hex digits. */
  contentHash: string;
}

/** What must hold of one stream for a batch to be committed. */
export interface StreamPrecondition {
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

/** A validated batch: all that the writer needs, nothing that it must check again. */
export interface PreparedBatch {
  source: string;
  batchId: string;
  /** SHA-256, 64 lowercase hex digits. */
  batchDigest: string;
  events: PreparedEvent[];
  precondition: StreamPrecondition | undefined;
  /** Declared by the first event when it lies in the lineage stream. */
  lineage: LineageMarker | undefined;
}

/** Answer to a committed or repeated batch. */
export interface Receipt {
  status: "committed" | "duplicate";
  batch_digest: string;
  /** Number of events in the batch. */
  events: number;
  first_event_id: string;
  last_event_id: string;
}

/** Answer to a retirement, the first or a repeated one. */
export interface RetirementReceipt {
  v: 1;
  status: "retired" | "already_retired";
  source: string;
  /** Last event of the source. */
  final_frontier: string;
  retirement_event_id: string;
}

/** One row of the enumeration of streams. */
export interface StreamSummary {
  source: string;
  stream: string;
  frontier_event_id: string;
  event_count: number;
}
