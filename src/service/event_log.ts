/** What the HTTP layer asks of the service. */
import type { PreparedBatch, Receipt } from "../event/types.ts";
import type { EventFilter } from "../log/stored_line.ts";

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
   * The next events: stored lines joined by commas, without a leading or trailing one; null when the
   * page is complete. From then on `lastEventId` and `nextAfter` are final.
   */
  next(): Promise<Uint8Array | null>;
  /** Last event handed out so far. */
  readonly lastEventId: string | null;
  /** Where the next page starts. */
  readonly nextAfter: string | null;
}

export interface EventLog {
  /**
   * Commits a batch durably, or answers from the one committed before.
   * @throws {ApiError} `batch_id_conflict`, `source_retired`, `stream_frontier_conflict`,
   *   `source_lineage_conflict`, `storage_full`, `writer_poisoned`.
   */
  append(batch: PreparedBatch): Promise<Receipt>;
  replay(query: ReplayQuery): Replay;
}
