/**
 * The committed state against which mutations are checked. Unsealed batches are in memory; sealed
 * ones are looked up in their segments.
 *
 * Invariant: no lookup misses a batch. A lookup starts in both in the same turn of the event loop,
 * and a file leaves memory in the turn in which its segments are added to the history.
 */
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "../event/system_names.ts";
import type { Log } from "../log/log.ts";
import type { BatchIndex } from "../log/wal/batch_index.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";

/** The retirement of a source. */
export interface Retirement {
  /** Last event from the source. */
  finalFrontier: string;
  /** The system event that retired it. */
  retirementEventId: string;
}

/** Returns the batch id of a retirement. A source has no events after it, so its last one tells. */
export function retirementBatchId(source: string, finalFrontier: string): string {
  return `${RESERVED_BATCH_PREFIX}retire/${source}/${finalFrontier}`;
}

/** A value that is in memory, or a promise of it if it must be read from a segment. */
type Known<Value> = Value | null | Promise<Value | null>;

export class LogState {
  readonly #log: Pick<Log, "sealed" | "unsealed">;

  constructor(log: Pick<Log, "sealed" | "unsealed">) {
    this.#log = log;
  }

  /** Returns the committed batch with this identity, or null. */
  findBatch(source: string, batchId: string): Known<BatchEntry> {
    return this.#findUnsealed((batches) => batches.findBatch(source, batchId)) ??
      this.#log.sealed.findBatch(source, batchId);
  }

  sourceFrontier(source: string): Known<string> {
    return this.#findUnsealed((batches) => batches.sourceFrontier(source)) ??
      this.#log.sealed.sourceFrontier(source);
  }

  streamFrontier(source: string, stream: string): Known<string> {
    return this.#findUnsealed(({ streams }) => streams.frontier(source, stream)) ??
      this.#log.sealed.streamFrontier(source, stream);
  }

  /** Returns the retirement of a source, or null if it is not retired. */
  findRetirement(source: string): Known<Retirement> {
    const frontier = this.#findUnsealed((batches) => batches.sourceFrontier(source));
    if (frontier === null) return this.#findSealedRetirement(source);
    // A retirement follows its source's last event. If that is unsealed, so is the retirement.
    const batchId = retirementBatchId(source, frontier);
    const entry = this.#findUnsealed((batches) => batches.findBatch(SYSTEM_SOURCE, batchId));
    return entry && { finalFrontier: frontier, retirementEventId: entry.first_event_id };
  }

  async #findSealedRetirement(source: string): Promise<Retirement | null> {
    const frontier = await this.#log.sealed.sourceFrontier(source);
    if (frontier === null) return null;
    const entry = await this.findBatch(SYSTEM_SOURCE, retirementBatchId(source, frontier));
    return entry && { finalFrontier: frontier, retirementEventId: entry.first_event_id };
  }

  /** Returns the first value found, from the newest file to the oldest. */
  #findUnsealed<Value>(find: (batches: BatchIndex) => Value | null): Value | null {
    for (const { batches } of this.#log.unsealed.toReversed()) {
      const found = find(batches);
      if (found !== null) return found;
    }
    return null;
  }
}
