/** Types shared by the layers. */
import type { Buffer } from "node:buffer";
import type { StreamPrecondition } from "./wire_types.ts";

export type * from "./wire_types.ts";

/** Declares, in a source's first batch, the retired source it continues. */
export interface LineageMarker {
  predecessor_source: string;
  /** Expected id of the predecessor's last event. */
  predecessor_final_frontier: string;
}

/** The events in a batch that belong to one stream. */
export interface StreamShare {
  stream: string;
  events: number;
  /** Index in the batch of the stream's last event. */
  lastIndex: number;
}

/**
 * Stored lines (all members, then LF) and hashed envelopes (RFC 8785, without payload and event
 * hash). Until the commit, both have placeholders for ids, time and event hashes.
 */
export interface EncodedEvents {
  count: number;
  streams: StreamShare[];
  /** One line per event, including its LF. */
  lines: Buffer;
  envelopes: Buffer;
  /** Offsets in both, OFFSETS integers per event (`batch_encoder.ts`). */
  offsets: Int32Array;
}

/** A validated batch with its events encoded, ready for the writer. */
export interface PreparedBatch {
  source: string;
  batchId: string;
  events: EncodedEvents;
  precondition: StreamPrecondition | undefined;
  /** Declared by the first event, if that event is in the lineage stream. */
  lineage: LineageMarker | undefined;
  /**
   * SHA-256, 64 lowercase hex digits, of
   * `{v, source, events: [{stream, record_key, kind, content_hash, occurred_at?}]}` in RFC 8785
   * form. A submission repeats an earlier one if both have the same batch id and digest.
   */
  batchDigest: string;
}
