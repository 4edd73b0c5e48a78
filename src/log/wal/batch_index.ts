/** The batches, frontiers and streams in an unsealed file: the tail or a pending generation. */
import { assert } from "../../assert.ts";
import { StreamCounts } from "../read/stream_counts.ts";
import { CorruptLogError } from "../storage/errors.ts";
import type { BatchEntry } from "./commit_frame.ts";

/** The events that a commit adds to one stream. */
export interface StreamGrowth {
  source: string;
  stream: string;
  events: number;
  lastEventId: string;
}

export class BatchIndex {
  readonly streams: StreamCounts = new StreamCounts();
  /** Batches by source, then by batch id. */
  readonly #batches = new Map<string, Map<string, BatchEntry>>();
  /** Last event from each source. */
  readonly #frontiers = new Map<string, string>();

  /** Adds the next batch. @throws {CorruptLogError} if a batch with this identity exists. */
  add(entry: BatchEntry): void {
    const { source, batch_id, first_event_id, last_event_id } = entry;
    const byId = this.#batches.get(source) ?? new Map<string, BatchEntry>();
    if (byId.has(batch_id)) throw committedTwice(entry);
    const frontier = this.#frontiers.get(source);
    assert(frontier === undefined || frontier < first_event_id, "a source's frontier must advance");
    this.#batches.set(source, byId.set(batch_id, entry));
    this.#frontiers.set(source, last_event_id);
  }

  /** Counts the next events in a stream. @throws {CorruptLogError} if they are out of order. */
  grow({ source, stream, events, lastEventId }: StreamGrowth): void {
    const before = this.streams.frontier(source, stream);
    if (before !== null && before >= lastEventId) {
      throw new CorruptLogError(
        `event ids out of order in stream ${source}/${stream}: ${lastEventId} after ${before}`,
      );
    }
    this.streams.add(source, stream, events, lastEventId);
  }

  findBatch(source: string, batchId: string): BatchEntry | null {
    return this.#batches.get(source)?.get(batchId) ?? null;
  }

  sourceFrontier(source: string): string | null {
    return this.#frontiers.get(source) ?? null;
  }
}

export function committedTwice({ source, batch_id, first_event_id }: BatchEntry): CorruptLogError {
  return new CorruptLogError(
    `batch ${batch_id} of source ${source} is committed twice, ` +
      `the second time at event ${first_event_id}`,
  );
}
