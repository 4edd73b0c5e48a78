/**
 * Builds a segment's indexes from its streams, sources and batches. The writer stores the indexes;
 * `verify` and the read-back compare them with those in the file.
 */
import type { Buffer } from "node:buffer";
import type { Hash64 } from "../parquet/xxhash64.ts";
import { StreamCounts } from "../read/stream_counts.ts";
import { batchKeyHash, buildKeyFilter, streamKeyHash } from "./key_filter.ts";
import type { IndexRecord } from "./segment_metadata.ts";
import { encodeStreamIndex } from "./stream_index.ts";

export class SegmentIndex {
  readonly #streams = new StreamCounts();
  readonly #keys: Hash64[] = [];

  /** Called once per batch. */
  addBatch(source: string, batchId: string): void {
    this.#keys.push(batchKeyHash(source, batchId));
  }

  /** Adds `events` events from one stream, up to `lastEventId`. */
  addEvents(source: string, stream: string, events: number, lastEventId: string): void {
    this.#streams.add(source, stream, events, lastEventId);
    // The entry for the whole source sorts before those for its streams; see `sourceKey()`.
    this.#streams.add(source, "", events, lastEventId);
  }

  /** Returns the indexes in their file format. Called once, after the last event. */
  finish(): IndexRecord<Buffer> {
    const entries = [...this.#streams.entries()];
    for (const { key } of entries) this.#keys.push(streamKeyHash(key));
    return { key_filter: buildKeyFilter(this.#keys), ...encodeStreamIndex(entries) };
  }
}
