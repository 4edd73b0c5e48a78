/**
 * Every committed batch by its identity `(source, batch_id)`, for the life of the log. Filled from
 * commit headers at a start, and after each commit: there is no second place on disk that could
 * disagree.
 */
import { assert } from "../assert.ts";
import type { BatchEntry } from "../log/commit_frame.ts";
import { IdentityMap } from "./identity_map.ts";

export class BatchIndex {
  readonly #entries = new IdentityMap<BatchEntry>();

  /** The committed batch of that identity; undefined when there is none. */
  get(source: string, batchId: string): BatchEntry | undefined {
    return this.#entries.get(source, batchId);
  }

  add(entry: BatchEntry): void {
    const { source, batch_id: batchId } = entry;
    assert(this.get(source, batchId) === undefined, "a batch identity is committed once");
    this.#entries.set(source, batchId, entry);
  }
}
