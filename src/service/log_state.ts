/**
 * What the writer decides by: everything that is committed. What is not sealed is in memory, filled
 * from commit headers at a start and after each commit, so that it holds nothing that is not
 * durable. What is sealed is looked up in its segments.
 */
import { assert } from "../assert.ts";
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "../event/system_names.ts";
import type { BatchEntry } from "../log/commit_frame.ts";
import { SealedHistory } from "../log/sealed_history.ts";
import { BatchIndex } from "./batch_index.ts";

/** A source that takes no more batches. */
export interface Retirement {
  /** Last event of the source. */
  finalFrontier: string;
  /** The system event that retired it. */
  retirementEventId: string;
}

const RETIREMENT_PREFIX = `${RESERVED_BATCH_PREFIX}retire/`;

/** Batch id of a source's retirement. */
export function retirementBatchId(source: string, finalFrontier: string): string {
  return `${RETIREMENT_PREFIX}${source}/${finalFrontier}`;
}

export class LogState {
  readonly #batches: BatchIndex = new BatchIndex();
  readonly #frontierBySource = new Map<string, string>();
  readonly #retirements = new Map<string, Retirement>();
  #sealed: SealedHistory = new SealedHistory();

  /** Takes in what is sealed, before any batch. */
  open(sealed: SealedHistory): void {
    this.#sealed = sealed;
  }

  /** Takes in a durable batch; they come in log order. */
  add(entry: BatchEntry): void {
    this.#batches.add(entry);
    this.#frontierBySource.set(entry.source, entry.last_event_id);
    if (entry.source === SYSTEM_SOURCE && entry.batch_id.startsWith(RETIREMENT_PREFIX)) {
      this.#addRetirement(entry);
    }
  }

  /** Whether a batch that is not sealed has that identity. */
  hasUnsealed(source: string, batchId: string): boolean {
    return this.#batches.get(source, batchId) !== undefined;
  }

  /** The committed batch of that identity; null when there is none. */
  async findBatch(source: string, batchId: string): Promise<BatchEntry | null> {
    return this.#batches.get(source, batchId) ?? await this.#sealed.findBatch(source, batchId);
  }

  /** Last event of a source; undefined when it has none. */
  sourceFrontier(source: string): string | undefined {
    return this.#frontierBySource.get(source) ?? this.#sealed.sourceFrontier(source);
  }

  /** How a source was retired; null when it was not. */
  async findRetirement(source: string): Promise<Retirement | null> {
    const known = this.#retirements.get(source);
    if (known !== undefined || this.#frontierBySource.has(source)) return known ?? null;
    // A source has no events after its retirement, so its last one tells the batch id of that.
    const finalFrontier = this.#sealed.sourceFrontier(source);
    if (finalFrontier === undefined) return null;
    const batchId = retirementBatchId(source, finalFrontier);
    const entry = await this.#sealed.findBatch(SYSTEM_SOURCE, batchId);
    return entry === null ? null : { finalFrontier, retirementEventId: entry.first_event_id };
  }

  #addRetirement(entry: BatchEntry): void {
    // Neither part holds a slash.
    const [source, finalFrontier] = entry.batch_id.slice(RETIREMENT_PREFIX.length).split("/");
    assert(
      finalFrontier !== undefined && this.sourceFrontier(source!) === finalFrontier,
      "a source is retired at its last event",
    );
    this.#retirements.set(source!, { finalFrontier, retirementEventId: entry.first_event_id });
  }
}
