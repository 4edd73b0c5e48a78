/** The batches, frontiers and streams in an unsealed file: the tail or a pending file. */
import { assert } from "../../assert.ts";
import { SYSTEM_SOURCE } from "../../event/system_names.ts";
import { HASH_BYTES, UUID_BYTES, uuidText } from "../line/line_bytes.ts";
import { KeyTable, writeHex } from "../read/key_table.ts";
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

/** A batch's record: its first and last event id, its digest, and its events in 32 bits. */
const LAST_EVENT_ID = UUID_BYTES;
const DIGEST = LAST_EVENT_ID + UUID_BYTES;
const EVENTS = DIGEST + HASH_BYTES;
const RECORD_BYTES = EVENTS + 4;

export class BatchIndex {
  readonly streams: StreamCounts = new StreamCounts();
  /** Most files have none, and need no look-up of those of a source. */
  hasRetirements = false;
  readonly #batches = new KeyTable(RECORD_BYTES);
  /** The last event from each source, as the count of a stream without a name. */
  readonly #sources = new StreamCounts();

  get sizeBytes(): number {
    return this.streams.sizeBytes + this.#batches.sizeBytes + this.#sources.sizeBytes;
  }

  /** Adds the next batch. @throws {CorruptLogError} if a batch with this identity exists. */
  add(entry: BatchEntry): void {
    const { source, batch_id, first_event_id, last_event_id, batch_digest, events } = entry;
    const { count } = this.#batches;
    const number = this.#batches.add(source, batch_id);
    if (number < count) throw committedTwice(entry);
    const { bytes, at } = this.#batches.recordOf(number);
    writeHex(bytes, at, first_event_id);
    writeHex(bytes, at + LAST_EVENT_ID, last_event_id);
    writeHex(bytes, at + DIGEST, batch_digest);
    bytes.writeUInt32LE(events, at + EVENTS);
    const isLater = this.#sources.add(source, "", events, last_event_id);
    assert(isLater, "a source's frontier must advance");
    this.hasRetirements ||= source === SYSTEM_SOURCE;
  }

  /** Counts the next events in a stream. @throws {CorruptLogError} if they are out of order. */
  grow({ source, stream, events, lastEventId }: StreamGrowth): void {
    if (this.streams.add(source, stream, events, lastEventId)) return;
    throw new CorruptLogError(
      `event ids out of order in stream ${source}/${stream}: ${lastEventId} after ` +
        this.streams.frontier(source, stream),
    );
  }

  findBatch(source: string, batchId: string): BatchEntry | null {
    const number = this.#batches.find(source, batchId);
    if (number < 0) return null;
    const { bytes, at } = this.#batches.recordOf(number);
    return {
      batch_digest: bytes.toString("hex", at + DIGEST, at + EVENTS),
      batch_id: batchId,
      events: bytes.readUInt32LE(at + EVENTS),
      first_event_id: uuidText(bytes, at),
      last_event_id: uuidText(bytes, at + LAST_EVENT_ID),
      source,
    };
  }

  sourceFrontier(source: string): string | null {
    return this.#sources.frontier(source, "");
  }
}

export function committedTwice({ source, batch_id, first_event_id }: BatchEntry): CorruptLogError {
  return new CorruptLogError(
    `batch ${batch_id} of source ${source} is committed twice, ` +
      `the second time at event ${first_event_id}`,
  );
}
