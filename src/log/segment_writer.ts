/**
 * Writes sealed history: takes stored lines batch by batch, in log order, and writes one Parquet
 * file row group by row group, so that memory is that of one row group. Whatever does not fit what
 * was committed (order, counts, chain heads) stops it: a segment is never a place where history
 * changes.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { assert } from "../assert.ts";
import { HistoryChain } from "../event/chain.ts";
import {
  ROW_GROUP_BYTES_SOFT_MAX,
  ROW_GROUP_EVENTS_MAX,
  SEGMENT_BYTES_SOFT_MAX,
  SEGMENT_EVENTS_SOFT_MAX,
} from "../limits.ts";
import type { BatchPiece } from "./batch_pieces.ts";
import type { BatchEntry } from "./commit_frame.ts";
import { sameBytes } from "./line_bytes.ts";
import { CorruptLogError } from "./log_error.ts";
import { encodeMetadata, type SegmentFacts } from "./segment_metadata.ts";
import { RowGroupWriter } from "./segment_row_groups.ts";
import { RowGroupRows } from "./segment_rows.ts";
import { SegmentSink } from "./segment_sink.ts";
import type { Storage, StorageFile } from "./storage.ts";
import { StoredEvent } from "./stored_event.ts";
import { StreamCounter } from "./stream_counter.ts";

export type { BatchPiece } from "./batch_pieces.ts";

const LF = 0x0a;

export interface SegmentBounds {
  /** A segment takes no more commits once it has so many events. */
  events: number;
  /** Nor once its lines have so many bytes. */
  bytes: number;
}

export interface WriteSegmentOptions {
  /** Chain head before the first event, 64 lowercase hex digits. */
  previousHead: string;
  bounds?: SegmentBounds;
  /** Asked after each commit: whether the segment is to end here, whatever its size. */
  endsEarly?: () => boolean;
}

const BOUNDS: SegmentBounds = { events: SEGMENT_EVENTS_SOFT_MAX, bytes: SEGMENT_BYTES_SOFT_MAX };

/** A segment that has been written. */
export interface WrittenSegment {
  facts: SegmentFacts;
  /** SHA-256 of all its lines, 64 hex digits: what must come out when it is read back. */
  linesSha256: string;
}

/**
 * Makes the file at `path`, which must not exist, from the next commits of the log, and syncs it.
 * What the iterator has left after the segment is full stays in it for the next one. A segment ends
 * where a commit ends: by then the frame of that has been checked.
 *
 * @returns null, and no file, when the iterator has no events.
 * @throws {CorruptLogError} the lines are not what their batches say. The file is of no use then.
 */
export async function writeSegment(
  storage: Storage,
  path: string,
  pieces: AsyncIterator<BatchPiece>,
  { previousHead, bounds = BOUNDS, endsEarly = () => false }: WriteSegmentOptions,
): Promise<WrittenSegment | null> {
  let next = await pieces.next();
  if (next.done === true) return null;
  const file = await storage.open(path, "create");
  try {
    const segment = new SegmentWriter(file, previousHead);
    while (next.done !== true) {
      await segment.add(next.value);
      if (segment.endsCommit && (segment.isFull(bounds) || endsEarly())) break;
      next = await pieces.next();
    }
    const written = await segment.finish();
    await file.sync();
    return written;
  } finally {
    await file.close();
  }
}

/** A batch whose lines are being taken in. */
interface OpenBatch {
  entry: BatchEntry;
  /** As they are spelled in lines. */
  source: Buffer;
  spelledId: Buffer;
  remainingEvents: number;
}

class SegmentWriter {
  readonly #sink: SegmentSink;
  readonly #rowGroups: RowGroupWriter;
  readonly #previousHead: string;
  readonly #chain: HistoryChain;
  readonly #streams = new StreamCounter();
  readonly #event = new StoredEvent();
  readonly #rows = new RowGroupRows();
  #rowsBytes = 0;
  /** The batch that lines are being taken from; null before the first one. */
  #batch: OpenBatch | null = null;
  #endsCommit = false;
  #batches = 0;
  #events = 0;
  readonly #linesHash = createHash("sha256");
  #linesBytes = 0;
  #firstEventId: string | null = null;
  #lastEventId: string | null = null;

  constructor(file: StorageFile, previousHead: string) {
    this.#sink = new SegmentSink(file);
    this.#rowGroups = new RowGroupWriter(this.#sink);
    this.#previousHead = previousHead;
    this.#chain = new HistoryChain(previousHead);
  }

  /** Whether what was added last is the end of a commit. */
  get endsCommit(): boolean {
    return this.#endsCommit;
  }

  isFull(bounds: SegmentBounds): boolean {
    return this.#events >= bounds.events || this.#linesBytes >= bounds.bytes;
  }

  async add({ entry, lines, head }: BatchPiece): Promise<void> {
    if (this.#batch?.entry !== entry) this.#startBatch(entry);
    for (let start = 0; start < lines.length;) {
      const newline = lines.indexOf(LF, start);
      if (newline < 0) throw new CorruptLogError(`a line of batch ${entry.batch_id} does not end`);
      const lineBytes = newline + 1 - start;
      if (this.#rowGroupEnds(lineBytes)) await this.#writeRowGroup();
      this.#addLine(lines, start, newline);
      this.#rowsBytes += lineBytes;
      start = newline + 1;
    }
    this.#linesHash.update(lines);
    this.#linesBytes += lines.length;
    this.#endsCommit = head !== undefined;
    if (head !== undefined && head !== this.#chain.head) {
      throw new CorruptLogError(
        `the chain head after event ${this.#lastEventId} is ${this.#chain.head}, but the log ` +
          `says ${head}`,
      );
    }
  }

  async finish(): Promise<WrittenSegment> {
    assert(this.#firstEventId !== null && this.#lastEventId !== null, "a segment holds events");
    this.#endBatch();
    await this.#writeRowGroup();
    const metadata = {
      events: this.#events,
      batches: this.#batches,
      first_event_id: this.#firstEventId,
      last_event_id: this.#lastEventId,
      previous_head: this.#previousHead,
      head: this.#chain.head,
    };
    await this.#rowGroups.finish(encodeMetadata({ ...metadata, streams: this.#streams.list() }));
    const { writtenBytes: bytes } = this.#sink;
    return {
      facts: { ...metadata, sha256: this.#sink.digest(), bytes },
      linesSha256: this.#linesHash.digest("hex"),
    };
  }

  #startBatch(entry: BatchEntry): void {
    this.#endBatch();
    this.#batch = {
      entry,
      source: Buffer.from(entry.source),
      spelledId: Buffer.from(JSON.stringify(entry.batch_id).slice(1, -1)),
      remainingEvents: entry.events,
    };
    this.#batches += 1;
  }

  #addLine(lines: Buffer, start: number, end: number): void {
    const batch = this.#batch!;
    const event = this.#event;
    if (!event.take(lines, start, end) || !isOfBatch(event, batch)) {
      throw new CorruptLogError(
        `the line after event ${this.#lastEventId} is no event of batch ${batch.entry.batch_id}`,
      );
    }
    const { eventId } = event;
    if (this.#lastEventId !== null && eventId <= this.#lastEventId) {
      throw new CorruptLogError(`event ${eventId} follows event ${this.#lastEventId}`);
    }
    const stream = this.#rows.add(event, batch.entry);
    this.#chain.append(event.eventHash);
    this.#streams.add(batch.entry.source, stream, 1, eventId);
    this.#firstEventId ??= eventId;
    this.#lastEventId = eventId;
    this.#events += 1;
    batch.remainingEvents -= 1;
  }

  #endBatch(): void {
    if (this.#batch === null) return;
    const { entry, remainingEvents } = this.#batch;
    if (remainingEvents !== 0 || this.#lastEventId !== entry.last_event_id) {
      throw new CorruptLogError(
        `batch ${entry.batch_id} of ${entry.events} events ends with event ` +
          `${entry.last_event_id}, but its lines do not`,
      );
    }
  }

  #rowGroupEnds(lineBytes: number): boolean {
    const { rows } = this.#rows;
    return rows === ROW_GROUP_EVENTS_MAX ||
      rows > 0 && this.#rowsBytes + lineBytes > ROW_GROUP_BYTES_SOFT_MAX;
  }

  async #writeRowGroup(): Promise<void> {
    await this.#rowGroups.write(this.#rows);
    this.#rows.clear();
    this.#rowsBytes = 0;
  }
}

function isOfBatch(event: StoredEvent, { source, spelledId }: OpenBatch): boolean {
  const { bytes, sourceStart, sourceEnd, batchIdStart, batchIdEnd } = event;
  return sameBytes(bytes, sourceStart, sourceEnd, source, 0, source.length) &&
    sameBytes(bytes, batchIdStart, batchIdEnd, spelledId, 0, spelledId.length);
}
