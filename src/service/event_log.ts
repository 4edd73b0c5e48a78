/** What the HTTP layer requires of the service. */
import type { PreparedBatch, Receipt, RetirementReceipt } from "../event/types.ts";
import type { ScanOptions } from "../log/read/event_scan.ts";
import type { StreamsPage, StreamsQuery } from "./streams.ts";

export type ReplayQuery = Omit<ScanOptions, "limitBytes">;

/** A finite replay of one snapshot, piece by piece. */
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

/** A follow response, record by record. */
export interface Follow {
  /**
   * The next record, one line of JSON with its LF; null after the last. Waits for a commit when all
   * is delivered.
   */
  next(): Promise<Uint8Array | null>;
  /** Ends the session; returns the last record, for a client that takes no bytes. */
  end(reason: "buffer_exceeded", detail: string): Uint8Array;
  /** Frees the session when its client is gone. Harmless when it is over. */
  close(): void;
}

export interface EventLog {
  /**
   * Commits a batch durably, or returns the receipt of the one committed before.
   * @throws {ApiError} `batch_id_conflict`, `source_retired`, `stream_frontier_conflict`,
   *   `source_lineage_conflict`, `storage_full`, `writer_poisoned`.
   */
  append(batch: PreparedBatch): Promise<Receipt>;
  /**
   * Retires a source, or returns the receipt of its retirement.
   * @throws {ApiError} `source_not_found`, `storage_full`, `writer_poisoned`.
   */
  retire(source: string): Promise<RetirementReceipt>;
  replay(query: ReplayQuery): Replay;
  /** @throws {ApiError} `overloaded` beyond the limit of followers. */
  follow(query: ReplayQuery): Follow;
  /** @throws {ApiError} `stream_anchor_unavailable`. */
  streams(query: StreamsQuery): Promise<StreamsPage>;
}
