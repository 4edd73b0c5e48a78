/**
 * Collects the streams, sources and keys of a segment: the writer writes them, and `verify` and the
 * read-back compare the file with them.
 */
import type { Buffer } from "node:buffer";
import type { Hash64 } from "../parquet/xxhash64.ts";
import { StreamCounts, type StreamEntry } from "../read/stream_counts.ts";
import { batchKeyHash, buildKeyFilter, streamKeyHash } from "./key_filter.ts";

export interface SegmentIndexContent {
  /** Sources and streams, in order of their keys. */
  entries: readonly StreamEntry[];
  /** Over the keys of all batches, sources and streams. */
  keyFilter: Buffer;
}

export class SegmentIndex {
  readonly #streams = new StreamCounts();
  readonly #keys: Hash64[] = [];

  /** Adds a batch, once. */
  addBatch(source: string, batchId: string): void {
    this.#keys.push(batchKeyHash(source, batchId));
  }

  /** Adds events of one stream, the last of which has that id. */
  addEvents(source: string, stream: string, events: number, lastEventId: string): void {
    this.#streams.add(source, stream, events, lastEventId);
    // The entry of the whole source, before those of its streams: see `sourceKey()`.
    this.#streams.add(source, "", events, lastEventId);
  }

  /** Call once, after the last event. */
  finish(): SegmentIndexContent {
    const entries = [...this.#streams.entries()];
    for (const { key } of entries) this.#keys.push(streamKeyHash(key));
    return { entries, keyFilter: buildKeyFilter(this.#keys) };
  }
}
