/**
 * Collects what the footer of a segment says of its streams, sources and keys: the writer to write
 * it, `verify` and the read-back to hold the file to it.
 */
import { assert } from "../../assert.ts";
import { batchKeyHash, KeyHashes, sourceKeyHash, streamKeyHash } from "./key_filter.ts";
import { FULL_SPEED, type Pace, paced } from "../sealing/pace.ts";
import type { SourceFrontier, StreamCount } from "./segment_metadata.ts";
import { StreamCounts } from "./stream_counts.ts";

export interface SegmentIndexContent {
  /** In order of source, then stream. */
  streams: Iterable<StreamCount>;
  /** In order. */
  sources: SourceFrontier[];
  /** Over the keys of all batches, sources and streams. */
  keyFilter: Uint8Array;
}

export class SegmentIndex {
  readonly #streams = new StreamCounts();
  readonly #keys = new KeyHashes();
  /** Events of one stream that are not counted yet: mostly, others of it follow. */
  #run: StreamCount | null = null;

  /** Takes in the next batch, once. */
  addBatch(source: string, batchId: string): void {
    this.#keys.add(batchKeyHash(source, batchId));
  }

  /** Takes in events of one stream, the last of which has that id. */
  addEvents(source: string, stream: string, events: number, lastEventId: string): void {
    if (this.#run === null || this.#run.stream !== stream || this.#run.source !== source) {
      this.#endRun();
      this.#run = { source, stream, events: 0, last_event_id: "" };
    }
    this.#run.events += events;
    this.#run.last_event_id = lastEventId;
  }

  /** To be called once, after all of the segment. */
  finish(pace: Pace = FULL_SPEED): SegmentIndexContent {
    this.#endRun();
    const streams = { [Symbol.iterator]: () => this.#streams.entries() };
    const sources = sourceFrontiers(paced(streams, pace));
    for (const { source } of sources) this.#keys.add(sourceKeyHash(source));
    for (const { source, stream } of paced(streams, pace)) {
      this.#keys.add(streamKeyHash(source, stream));
    }
    return { streams, sources, keyFilter: this.#keys.filter(pace) };
  }

  #endRun(): void {
    if (this.#run === null) return;
    const { source, stream, events, last_event_id } = this.#run;
    this.#streams.addNext(source, stream, events, last_event_id);
    this.#run = null;
  }
}

/** @param streams in order. */
function sourceFrontiers(streams: Iterable<StreamCount>): SourceFrontier[] {
  const sources: SourceFrontier[] = [];
  for (const { source, last_event_id } of streams) {
    const last = sources.at(-1);
    assert(last === undefined || last.source <= source, "streams are in order");
    if (last === undefined || last.source !== source) sources.push({ last_event_id, source });
    else if (last.last_event_id < last_event_id) last.last_event_id = last_event_id;
  }
  return sources;
}
