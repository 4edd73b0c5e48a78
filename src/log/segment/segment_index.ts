/**
 * Collects what the footer of a segment says of its streams, sources and keys: the writer to write
 * it, `verify` and the read-back to hold the file to it.
 */
import type { Buffer } from "node:buffer";
import { assert } from "../../assert.ts";
import { batchKeyHash, KeyHashes, sourceKeyHash, streamKeyHash } from "./key_filter.ts";
import { FULL_SPEED, type Pace, paced } from "../sealing/pace.ts";
import { type StreamCount, StreamCounts } from "./stream_counts.ts";
import { sourceKey, type StreamEntry, streamKey } from "./stream_index.ts";

export interface SegmentIndexContent {
  /** Sources and streams, in order of their keys. */
  entries: Iterable<StreamEntry>;
  /** Over the keys of all batches, sources and streams. */
  keyFilter: Buffer;
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
    const sources = new Map<string, StreamEntry>();
    for (const count of paced(this.#streams.entries(), pace)) {
      this.#keys.add(streamKeyHash(count.source, count.stream));
      addToSource(sources, count);
    }
    for (const source of sources.keys()) this.#keys.add(sourceKeyHash(source));
    const entries = { [Symbol.iterator]: () => allEntries(this.#streams.entries(), sources) };
    return { entries, keyFilter: this.#keys.filter() };
  }

  #endRun(): void {
    if (this.#run === null) return;
    const { source, stream, events, last_event_id } = this.#run;
    this.#streams.addNext(source, stream, events, last_event_id);
    this.#run = null;
  }
}

function addToSource(
  sources: Map<string, StreamEntry>,
  { source, events, last_event_id: lastEventId }: StreamCount,
): void {
  const entry = sources.get(source);
  if (entry === undefined) sources.set(source, { key: sourceKey(source), events, lastEventId });
  else {
    entry.events += events;
    if (entry.lastEventId < lastEventId) entry.lastEventId = lastEventId;
  }
}

/** @param streams in order. */
function* allEntries(
  streams: Iterable<StreamCount>,
  sources: ReadonlyMap<string, StreamEntry>,
): Generator<StreamEntry, void> {
  let last: StreamEntry | null = null;
  for (const { source, stream, events, last_event_id: lastEventId } of streams) {
    const entry = { key: streamKey(source, stream), events, lastEventId };
    assert(last === null || last.key < entry.key, "streams are in order");
    if (last === null || !last.key.startsWith(sourceKey(source))) yield sources.get(source)!;
    yield entry;
    last = entry;
  }
}
