/**
 * Everything committed, as decisions and stream listings need it. Unsealed batches are in memory;
 * sealed ones are looked up in their segments.
 *
 * Invariant: at every moment a batch is in memory or in the sealed history. A lookup starts in both
 * in one turn of the event loop, and a file leaves memory in the turn in which its segments enter
 * the history: so no lookup misses it, however long it then reads.
 */
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "../event/system_names.ts";
import type { Log } from "../log/log.ts";
import type { BatchIndex } from "../log/wal/batch_index.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";

/** A source that takes no more batches. */
export interface Retirement {
  /** Last event of the source. */
  finalFrontier: string;
  /** The system event that retired it. */
  retirementEventId: string;
}

/** Batch id of a source's retirement. */
export function retirementBatchId(source: string, finalFrontier: string): string {
  return `${RESERVED_BATCH_PREFIX}retire/${source}/${finalFrontier}`;
}

export class LogState {
  readonly #log: Pick<Log, "sealed" | "unsealed">;

  constructor(log: Pick<Log, "sealed" | "unsealed">) {
    this.#log = log;
  }

  /** The committed batch of an identity; null when there is none. */
  async findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    return this.#findUnsealed((batches) => batches.findBatch(source, batchId)) ??
      await this.#log.sealed.findBatch(source, batchId);
  }

  /** Last event of a source; null when it has none. */
  async sourceFrontier(source: string): Promise<string | null> {
    return this.#findUnsealed((batches) => batches.sourceFrontier(source)) ??
      await this.#log.sealed.sourceFrontier(source);
  }

  /** Last event of a stream; null when it has none. */
  async streamFrontier(source: string, stream: string): Promise<string | null> {
    return this.#findUnsealed(({ streams }) => streams.frontier(source, stream)) ??
      await this.#log.sealed.streamFrontier(source, stream);
  }

  /** How a source was retired; null when it was not. */
  async findRetirement(source: string): Promise<Retirement | null> {
    const unsealedFrontier = this.#findUnsealed((batches) => batches.sourceFrontier(source));
    const finalFrontier = unsealedFrontier ?? await this.#log.sealed.sourceFrontier(source);
    if (finalFrontier === null) return null;
    // A source has no events after its retirement, so the batch id follows from its last one.
    const batchId = retirementBatchId(source, finalFrontier);
    // A retirement follows the last event of its source: it is no more sealed than that.
    const entry = unsealedFrontier === null
      ? await this.findBatch(SYSTEM_SOURCE, batchId)
      : this.#findUnsealed((batches) => batches.findBatch(SYSTEM_SOURCE, batchId));
    return entry === null ? null : { finalFrontier, retirementEventId: entry.first_event_id };
  }

  /** The first value found, from the newest file to the oldest. */
  #findUnsealed<Value>(find: (batches: BatchIndex) => Value | null): Value | null {
    for (const { batches } of this.#log.unsealed.toReversed()) {
      const found = find(batches);
      if (found !== null) return found;
    }
    return null;
  }
}
