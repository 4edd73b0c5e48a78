/**
 * What the writer decides by: everything that is committed, in memory. It is filled from commit
 * headers at a start and after each commit, so that it holds nothing that is not durable.
 */
import { assert } from "../assert.ts";
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "../event/system_names.ts";
import type { BatchEntry } from "../log/commit_frame.ts";
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
  readonly batches: BatchIndex = new BatchIndex();
  readonly #frontierBySource = new Map<string, string>();
  readonly #retirements = new Map<string, Retirement>();

  /** Takes in a durable batch; they come in log order. */
  add(entry: BatchEntry): void {
    this.batches.add(entry);
    this.#frontierBySource.set(entry.source, entry.last_event_id);
    if (entry.source === SYSTEM_SOURCE && entry.batch_id.startsWith(RETIREMENT_PREFIX)) {
      this.#addRetirement(entry);
    }
  }

  /** Last event of a source; undefined when it has none. */
  sourceFrontier(source: string): string | undefined {
    return this.#frontierBySource.get(source);
  }

  /** How a source was retired; undefined when it was not. */
  retirement(source: string): Retirement | undefined {
    return this.#retirements.get(source);
  }

  #addRetirement(entry: BatchEntry): void {
    // Neither part holds a slash.
    const [source, finalFrontier] = entry.batch_id.slice(RETIREMENT_PREFIX.length).split("/");
    assert(
      finalFrontier !== undefined && this.#frontierBySource.get(source!) === finalFrontier,
      "a source is retired at its last event",
    );
    this.#retirements.set(source!, { finalFrontier, retirementEventId: entry.first_event_id });
  }
}
