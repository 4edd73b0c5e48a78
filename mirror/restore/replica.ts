/**
 * Builds a log from the messages in a stream, with the same ids, hashes, batches and order. A batch
 * is a run of events with the same source and batch id. Batch digests and the chain are recomputed,
 * and the hashes and rules of each event are checked. Only complete batches are committed.
 */
import { Buffer } from "node:buffer";
import { nextHead } from "../../src/event/chain.ts";
import { isEventId } from "../../src/event/event_id.ts";
import { sha256Hex } from "../../src/event/hash.ts";
import { COMMIT_BATCHES_MAX } from "../../src/limits.ts";
import { IngestRules } from "../../src/log/line/ingest_rules.ts";
import { viewOf } from "../../src/log/line/line_bytes.ts";
import { BatchDigester, hashEnvelope } from "../../src/log/line/line_hashes.ts";
import { SpelledBatch, StoredEvent } from "../../src/log/line/stored_event.ts";
import type { BatchEntry } from "../../src/log/wal/commit_frame.ts";
import type { MessageFacts } from "../nats/stream.ts";

const LF = 0x0a;
/** Commits of 8 MiB, as in the service, take 20% more CPU time because they exceed the caches. */
const COMMIT_BYTES = 2 * 1024 * 1024;
const BUFFER_BYTES_MIN = 2 * COMMIT_BYTES;

/** A batch whose last event has not arrived. */
interface OpenBatch {
  source: string;
  batch_id: string;
  /** The encoded source and batch id, which are compared with those of each event. */
  spelling: SpelledBatch;
  events: number;
  firstEventId: string;
  lastEventId: string;
}

/** The stream does not hold what an append to this log could have produced. */
export class StreamFaultError extends Error {
  override name = "StreamFaultError";
}

/** The end of the log that is continued. */
export interface LogEnd {
  head: string;
  lastEventId: string | null;
}

/** Complete batches to commit together. */
export interface VerifiedCommit {
  batches: BatchEntry[];
  /** The chain head after each batch. */
  heads: string[];
  /** The event lines from all batches. */
  lines: ArrayBuffer;
}

export class Replica {
  readonly #event = new StoredEvent();
  readonly #rules = new IngestRules();
  #digester = new BatchDigester();
  /** Chain head after the last complete batch. */
  #head: string;
  /** Chain head after the last event. */
  #openHead: string;
  /** Last event in the last complete batch. */
  #lastEventId: string | null;
  /** Lines from the complete batches not yet taken, followed by those from the open batch. */
  #lines: Buffer<ArrayBuffer> = Buffer.allocUnsafeSlow(BUFFER_BYTES_MIN);
  #wholeBytes = 0;
  #bytes = 0;
  #whole: BatchEntry[] = [];
  #heads: string[] = [];
  #open: OpenBatch | null = null;

  constructor({ head, lastEventId }: LogEnd) {
    this.#head = head;
    this.#openHead = head;
    this.#lastEventId = lastEventId;
  }

  /** The last event that was added. */
  get lastEventId(): string | null {
    return this.#open?.lastEventId ?? this.#lastEventId;
  }

  /** Number of events in the open batch. */
  get openEvents(): number {
    return this.#open?.events ?? 0;
  }

  /** Whether there are complete batches. */
  get hasWhole(): boolean {
    return this.#whole.length > 0;
  }

  /** Whether a commit is due. */
  get isFull(): boolean {
    return this.#wholeBytes >= COMMIT_BYTES || this.#whole.length === COMMIT_BATCHES_MAX;
  }

  /**
   * Adds the next event.
   * @param data the event's stored line, without LF.
   * @throws {StreamFaultError} if the event was altered or does not continue the log.
   */
  add(facts: MessageFacts, data: Uint8Array): void {
    const { eventId, previousId } = facts;
    if (this.#open !== null && previousId === this.#lastEventId) this.#dropOpen();
    if (previousId !== this.lastEventId) {
      const end = this.lastEventId === null ? "is empty" : `ends with ${this.lastEventId}`;
      throw new StreamFaultError(
        `event ${eventId} in the stream follows event ${previousId}, but the log ${end}: ` +
          "events in between are missing (if they have expired, use --segments), or the stream " +
          "is from a different log",
      );
    }
    const start = this.#append(data);
    const event = this.#event;
    if (!event.take(this.#lines, start, this.#bytes - 1) || event.eventId !== eventId) {
      throw new StreamFaultError(`event ${eventId} in the stream is malformed`);
    }
    this.#verify(event);
    if (this.#open !== null && !this.#open.spelling.holds(event)) this.#endBatch(start);
    const fault = this.#rules.faultIn(event, this.#open === null);
    if (fault !== null) {
      throw new StreamFaultError(
        `event ${eventId} in the stream breaks a rule of ingest: ${fault}`,
      );
    }
    this.#open ??= openBatch(event);
    this.#open.events += 1;
    this.#open.lastEventId = eventId;
    this.#digester.add(event);
    this.#openHead = nextHead(this.#openHead, event.eventHash);
    if (facts.endsBatch) this.#endBatch(this.#bytes);
  }

  /** Removes and returns all complete batches. */
  take(): VerifiedCommit {
    const lines = this.#lines.buffer.slice(0, this.#wholeBytes);
    const taken = { batches: this.#whole, heads: this.#heads, lines };
    this.#whole = [];
    this.#heads = [];
    this.#lines.copyWithin(0, this.#wholeBytes, this.#bytes);
    this.#bytes -= this.#wholeBytes;
    this.#wholeBytes = 0;
    return taken;
  }

  /** Appends a line to the buffer and returns its offset. */
  #append(data: Uint8Array): number {
    const start = this.#bytes;
    const end = start + data.length + 1;
    if (end > this.#lines.length) {
      const larger = Buffer.allocUnsafeSlow(2 * end);
      this.#lines.copy(larger, 0, 0, start);
      this.#lines = larger;
    }
    this.#lines.set(data, start);
    this.#lines[end - 1] = LF;
    this.#bytes = end;
    return start;
  }

  #verify(event: StoredEvent): void {
    const { eventId } = event;
    const isNext = isEventId(eventId) && eventId > (this.lastEventId ?? "");
    if (!isNext) throw new StreamFaultError(`event ${eventId} in the stream is out of order`);
    const content = sha256Hex(viewOf(event.bytes, event.payloadStart, event.payloadEnd));
    if (event.contentHash !== content || event.eventHash !== hashEnvelope(event)) {
      throw new StreamFaultError(
        `event ${eventId} in the stream was altered: its hashes do not match`,
      );
    }
  }

  /** Completes the open batch, whose lines end at `endBytes`. */
  #endBatch(endBytes: number): void {
    const { source, batch_id, events, firstEventId, lastEventId } = this.#open!;
    this.#whole.push({
      batch_digest: this.#digester.finish(),
      batch_id,
      events,
      first_event_id: firstEventId,
      last_event_id: lastEventId,
      source,
    });
    this.#open = null;
    this.#wholeBytes = endBytes;
    this.#lastEventId = lastEventId;
    this.#head = this.#openHead;
    this.#heads.push(this.#head);
  }

  /** Drops the open batch, whose remaining events were never pushed. */
  #dropOpen(): void {
    this.#open = null;
    this.#digester = new BatchDigester();
    this.#openHead = this.#head;
    this.#bytes = this.#wholeBytes;
  }
}

/** Starts the batch whose first event is given. */
function openBatch(event: StoredEvent): OpenBatch {
  const { bytes, eventId, sourceStart, sourceEnd, batchIdStart, batchIdEnd } = event;
  const textIn = (start: number, end: number): string =>
    JSON.parse(`"${bytes.toString("utf8", start, end)}"`);
  const source = textIn(sourceStart, sourceEnd);
  const batch_id = textIn(batchIdStart, batchIdEnd);
  const spelling = new SpelledBatch({ source, batch_id });
  return { source, batch_id, spelling, events: 0, firstEventId: eventId, lastEventId: eventId };
}
