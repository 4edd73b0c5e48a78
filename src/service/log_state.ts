/**
 * The committed state against which mutations are checked. Unsealed batches are in memory; sealed
 * ones are looked up in their segments.
 *
 * Invariant: a committed batch is always in memory or in the sealed history. A lookup starts in
 * both in the same turn of the event loop, and a file leaves memory in the turn in which its
 * segments are added to the history. Therefore no lookup misses a batch, however long reads take.
 */
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "../event/system_names.ts";
import type { RetirementReceipt } from "../event/types.ts";
import type { LogFiles } from "../log/sealing/log_files.ts";
import type { BatchIndex } from "../log/wal/batch_index.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import { type Maybe, whenKnown } from "../maybe.ts";

type Retirement = Pick<RetirementReceipt, "final_frontier" | "retirement_event_id">;

export function retirementBatchId(source: string, finalFrontier: string): string {
  return `${RESERVED_BATCH_PREFIX}retire/${source}/${finalFrontier}`;
}

export class LogState {
  readonly #files: Pick<LogFiles, "sealed" | "unsealed">;

  constructor(files: Pick<LogFiles, "sealed" | "unsealed">) {
    this.#files = files;
  }

  /** Returns the committed batch with this identity, or null. */
  findBatch(source: string, batchId: string): Maybe<BatchEntry | null> {
    return this.#findUnsealed((batches) => batches.findBatch(source, batchId)) ??
      this.#files.sealed.findBatch(source, batchId);
  }

  sourceFrontier(source: string): Maybe<string | null> {
    return this.#findUnsealed((batches) => batches.sourceFrontier(source)) ??
      this.#files.sealed.sourceFrontier(source);
  }

  streamFrontier(source: string, stream: string): Maybe<string | null> {
    return this.#findUnsealed(({ streams }) => streams.frontier(source, stream)) ??
      this.#files.sealed.streamFrontier(source, stream);
  }

  findRetirement(source: string): Maybe<Retirement | null> {
    const unsealedFrontier = this.#findUnsealed((batches) => batches.sourceFrontier(source));
    const hasRetirements = this.#files.unsealed.some(({ batches }) => batches.hasRetirements);
    if (unsealedFrontier !== null && !hasRetirements) return null;
    const frontier = unsealedFrontier ?? this.#files.sealed.sourceFrontier(source);
    return whenKnown(frontier, (final_frontier) => {
      if (final_frontier === null) return null;
      // A source has no events after its retirement, so its last event determines the batch id.
      const batchId = retirementBatchId(source, final_frontier);
      // A retirement follows its source's last event. If that is unsealed, so is the retirement.
      const found = unsealedFrontier === null
        ? this.findBatch(SYSTEM_SOURCE, batchId)
        : this.#findUnsealed((batches) => batches.findBatch(SYSTEM_SOURCE, batchId));
      return whenKnown(
        found,
        (entry) => entry && { final_frontier, retirement_event_id: entry.first_event_id },
      );
    });
  }

  /** Returns the first value found, from the newest file to the oldest. */
  #findUnsealed<Value>(find: (batches: BatchIndex) => Value | null): Value | null {
    const { unsealed } = this.#files;
    for (let place = unsealed.length - 1; place >= 0; place--) {
      const found = find(unsealed[place]!.batches);
      if (found !== null) return found;
    }
    return null;
  }
}
