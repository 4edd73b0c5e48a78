/**
 * What the writer must know of the batches of one file that is not sealed: the tail, or a rotated
 * one. It goes as a whole once the file is in segments.
 */
import { assert } from "../assert.ts";
import { ownText } from "../event/own_text.ts";
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "../event/system_names.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
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

export class Generation {
  readonly batches: BatchIndex = new BatchIndex();
  /** The number of the last batch of each source that has one here. */
  readonly #lastBatches = new Map<string, number>();
  /** By source. */
  readonly retirements: Map<string, Retirement> = new Map();

  /** Takes in a durable batch. @returns the source that it retires; null when it does not. */
  add(entry: BatchEntry): string | null {
    const { source } = entry;
    const number = this.batches.add(entry);
    // What is kept as text is copied: the texts of an entry may be parts of a whole commit header.
    this.#lastBatches.set(this.hasSource(source) ? source : ownText(source), number);
    if (source !== SYSTEM_SOURCE || !entry.batch_id.startsWith(RETIREMENT_PREFIX)) {
      return null;
    }
    // Neither part holds a slash.
    const named = ownText(entry.batch_id.slice(RETIREMENT_PREFIX.length));
    const [retired, finalFrontier] = named.split("/");
    assert(retired !== undefined && finalFrontier !== undefined, "a retirement names its source");
    const retirementEventId = ownText(entry.first_event_id);
    this.retirements.set(retired, { finalFrontier, retirementEventId });
    return retired;
  }

  /** Whether any batch of that source is here. */
  hasSource(source: string): boolean {
    return this.#lastBatches.has(source);
  }

  /** Last event of a source; undefined when it has none here. */
  frontierOf(source: string): string | undefined {
    const number = this.#lastBatches.get(source);
    return number === undefined ? undefined : this.batches.lastEventId(number);
  }
}
