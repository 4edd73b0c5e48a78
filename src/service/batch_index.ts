/**
 * Every committed batch by its identity `(source, batch_id)`, for the life of the log. Filled from
 * commit headers at a start, and after each commit: there is no second place on disk that could
 * disagree.
 */
import { assert } from "../assert.ts";
import type { BatchEntry } from "../log/commit_frame.ts";

export class BatchIndex {
  readonly #entries = new Map<string, BatchEntry>();

  /** The committed batch of that identity; undefined when there is none. */
  get(source: string, batchId: string): BatchEntry | undefined {
    return this.#entries.get(batchKey(source, batchId));
  }

  add(entry: BatchEntry): void {
    const before = this.#entries.size;
    this.#entries.set(batchKey(entry.source, entry.batch_id), entry);
    assert(this.#entries.size > before, "a batch identity is committed once");
  }
}

/** One string for an identity; unambiguous, since no source holds a space. */
export function batchKey(source: string, batchId: string): string {
  return `${source} ${batchId}`;
}
