/** The batches, frontiers and streams of one unsealed file: the tail, or a pending generation. */
import { assert } from "../assert.ts";
import { ownText } from "../event/own_text.ts";
import { RESERVED_BATCH_PREFIX, SYSTEM_SOURCE } from "../event/system_names.ts";
import { lineEventId, lineSourceAndStream } from "../log/line/stored_line.ts";
import { walkEvents } from "../log/read/event_walk.ts";
import type { LogFile } from "../log/read/snapshot.ts";
import { StreamCounts } from "../log/read/stream_counts.ts";
import type { StreamGrowth } from "../log/wal/commit_builder.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";

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

/** Kept for each batch; a tail may have a hundred thousand. */
type BatchFacts = Omit<BatchEntry, "source" | "batch_id">;

interface SourceBatches {
  byId: Map<string, BatchFacts>;
  /** Last event of the source in this file. */
  frontier: string;
}

export class Generation {
  readonly #sources = new Map<string, SourceBatches>();
  /** By source. */
  readonly #retirements = new Map<string, Retirement>();
  /** Counts of the events after `#uncountedThrough`. */
  #streams = new StreamCounts();
  /** Last of the recovered events, whose streams are counted on first use; null once they are. */
  #uncountedThrough: string | null = null;

  /** Adds the next recovered batch. @returns as `add()` */
  addRecovered(entry: BatchEntry): string | null {
    // Texts are detached: they may be parts of a whole commit header.
    const first_event_id = ownText(entry.first_event_id);
    const retired = this.#addBatch({
      source: ownText(entry.source),
      batch_id: ownText(entry.batch_id),
      batch_digest: ownText(entry.batch_digest),
      events: entry.events,
      first_event_id,
      last_event_id: entry.events === 1 ? first_event_id : ownText(entry.last_event_id),
    });
    this.#uncountedThrough = this.frontierOf(entry.source)!;
    return retired;
  }

  /** Adds a durable batch. @returns the source that it retires, or null. */
  add(entry: BatchEntry, growth: readonly StreamGrowth[]): string | null {
    assert(growth.length > 0, "a batch grows a stream");
    for (const { stream, events, lastEventId } of growth) {
      const before = this.#streams.frontier(entry.source, stream);
      assert(before === null || before < lastEventId, "a stream's frontier moves on");
      this.#streams.add(entry.source, stream, events, lastEventId);
    }
    return this.#addBatch(entry);
  }

  findBatch(source: string, batchId: string): BatchEntry | undefined {
    const facts = this.#sources.get(source)?.byId.get(batchId);
    return facts && { ...facts, batch_id: batchId, source };
  }

  /** Last event of a source in this file. */
  frontierOf(source: string): string | undefined {
    return this.#sources.get(source)?.frontier;
  }

  /** The retirement of a source in this file. */
  retirementOf(source: string): Retirement | undefined {
    return this.#retirements.get(source);
  }

  /** Whether `streams` has all events. */
  get isCounted(): boolean {
    return this.#uncountedThrough === null;
  }

  get streams(): StreamCounts {
    assert(this.isCounted, "the streams that a start found are counted");
    return this.#streams;
  }

  /** Counts the recovered streams from the lines of the file. */
  async countRecovered(file: LogFile): Promise<void> {
    const through = this.#uncountedThrough;
    if (through === null) return;
    const counts = await countEvents([file], through);
    counts.addAll(this.#streams);
    this.#streams = counts;
    this.#uncountedThrough = null;
  }

  #addBatch(entry: BatchEntry): string | null {
    const { source, batch_id, batch_digest, events, first_event_id, last_event_id } = entry;
    const known = this.#sources.get(source);
    assert(known?.byId.has(batch_id) !== true, "a batch identity is committed once");
    const { byId } = known ?? { byId: new Map<string, BatchFacts>() };
    byId.set(batch_id, { batch_digest, events, first_event_id, last_event_id });
    if (known !== undefined) known.frontier = last_event_id;
    else this.#sources.set(source, { byId, frontier: last_event_id });
    if (source !== SYSTEM_SOURCE || !batch_id.startsWith(RETIREMENT_PREFIX)) return null;
    // Neither part holds a slash.
    const [retired, finalFrontier] = ownText(batch_id.slice(RETIREMENT_PREFIX.length)).split("/");
    assert(retired !== undefined && finalFrontier !== undefined, "a retirement names its source");
    this.#retirements.set(retired, { finalFrontier, retirementEventId: first_event_id });
    return retired;
  }
}

/** Counts the events of files, from oldest to newest, up to one of them. */
export async function countEvents(
  files: readonly LogFile[],
  through: string,
): Promise<StreamCounts> {
  const counts = new StreamCounts();
  await walkEvents(files, undefined, (chunk, start) => {
    const eventId = lineEventId(chunk, start);
    if (eventId > through) return false;
    const { source, stream } = lineSourceAndStream(chunk, start);
    counts.add(source, stream, 1, eventId);
    return true;
  });
  return counts;
}
