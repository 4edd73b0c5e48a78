/**
 * What the writer must know of the batches of one file that is not sealed: the tail, or a rotated
 * one. It goes as a whole once the file is in segments.
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

export class Generation {
  readonly batches: BatchIndex = new BatchIndex();
  /** Last event of each source that has one here. */
  readonly frontierBySource: Map<string, string> = new Map();
  /** By source. */
  readonly retirements: Map<string, Retirement> = new Map();

  /** Takes in a durable batch. @returns the source that it retires; null when it does not. */
  add(entry: BatchEntry): string | null {
    this.batches.add(entry);
    this.frontierBySource.set(entry.source, entry.last_event_id);
    if (entry.source !== SYSTEM_SOURCE || !entry.batch_id.startsWith(RETIREMENT_PREFIX)) {
      return null;
    }
    // Neither part holds a slash.
    const [source, finalFrontier] = entry.batch_id.slice(RETIREMENT_PREFIX.length).split("/");
    assert(source !== undefined && finalFrontier !== undefined, "a retirement names its source");
    this.retirements.set(source, { finalFrontier, retirementEventId: entry.first_event_id });
    return source;
  }
}
