/** What the HTTP layer asks of the service. */
import type { PreparedBatch, Receipt, RetirementReceipt } from "../event/types.ts";
import type { EventFilter } from "../log/line/stored_line.ts";
import type { StreamsPage, StreamsQuery } from "./streams.ts";

export interface ReplayQuery {
  /** Exclusive lower bound, a canonical UUIDv7. */
  after: string | undefined;
  filter: EventFilter;
  /** At least 1. */
  limitEvents: number;
}

/** A finite replay over one snapshot, taken piece by piece. */
export interface Replay {
  /** Durable frontier when the replay was admitted; null for an empty log. */
  readonly snapshotThroughEventId: string | null;
  /**
   * The next events: stored lines joined by commas, without a leading or trailing one; empty when
   * much was read without a match; null when the page is complete. They are valid until the next
   * call. From the end on `lastEventId` and `nextAfter` are final.
   */
  next(): Promise<Uint8Array | null>;
  /** Last event handed out so far. */
  readonly lastEventId: string | null;
  /** Where the next page starts. */
  readonly nextAfter: string | null;
}

/** A follow response, taken record by record. */
export interface Follow {
  /** The next record, one line of JSON with its LF; null after the last. */
  next(): Promise<Uint8Array | null>;
  /** The last record for a client that takes no bytes; the session is over. */
  end(reason: "buffer_exceeded", detail: string): Uint8Array;
  /** Frees the session: the client is gone. Harmless when it is over. */
  close(): void;
}

export interface EventLog {
  /**
   * Commits a batch durably, or answers from the one committed before.
   * @throws {ApiError} `batch_id_conflict`, `source_retired`, `stream_frontier_conflict`,
   *   `source_lineage_conflict`, `storage_full`, `writer_poisoned`.
   */
  append(batch: PreparedBatch): Promise<Receipt>;
  /**
   * Retires a source, or answers from its retirement.
   * @throws {ApiError} `source_not_found`, `storage_full`, `writer_poisoned`.
   */
  retire(source: string): Promise<RetirementReceipt>;
  replay(query: ReplayQuery): Replay;
  /** @throws {ApiError} `overloaded` when there are as many followers as there may be. */
  follow(query: ReplayQuery): Follow;
  /** @throws {ApiError} `stream_anchor_unavailable`. */
  streams(query: StreamsQuery): Promise<StreamsPage>;
}
