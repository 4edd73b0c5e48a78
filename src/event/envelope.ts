/**
 * The committed event: its hash over the canonical envelope (everything but the payload), and the
 * one line of JSON that is stored and replayed.
 */
import { sha256Hex } from "./hash.ts";
import { quoteString } from "./quote_string.ts";
import type { PreparedEvent } from "./types.ts";

/** What all events of a batch have in common. */
export interface BatchIdentity {
  source: string;
  batchId: string;
  /** `YYYY-MM-DDTHH:MM:SS.mmmZ`. */
  observedAt: string;
}

/** An event as it goes to the log. */
export interface SealedEvent {
  /** JSON object without LF; members in the fixed order of storage. */
  line: string;
  /** 64 lowercase hex digits. */
  eventHash: string;
}

/** Writes the events of one batch; the parts they share are made once. */
export class EnvelopeWriter {
  readonly #source: string;
  readonly #batchId: string;
  readonly #observedAt: string;

  constructor(batch: BatchIdentity) {
    this.#source = ',"source":' + quoteString(batch.source);
    this.#batchId = '"batch_id":' + quoteString(batch.batchId);
    this.#observedAt = ',"observed_at":"' + batch.observedAt + '"';
  }

  /** Gives an event its id, its hash and its line. */
  write(event: PreparedEvent, eventId: string): SealedEvent {
    const id = '"event_id":"' + eventId + '"';
    const contentHash = ',"content_hash":"' + event.contentHash + '"';
    const kind = ',"kind":' + quoteString(event.kind);
    const recordKey = ',"record_key":' + quoteString(event.recordKey);
    const stream = ',"stream":"' + event.stream + '"';
    const occurredAt = event.occurredAt === undefined
      ? ""
      : ',"occurred_at":"' + event.occurredAt + '"';
    // RFC 8785 order: batch_id, content_hash, event_id, kind, observed_at, occurred_at, record_key,
    // source, stream.
    const eventHash = sha256Hex(
      "{" + this.#batchId + contentHash + "," + id + kind + this.#observedAt + occurredAt +
        recordKey + this.#source + stream + "}",
    );
    const line = "{" + id + this.#source + stream + recordKey + kind + occurredAt +
      this.#observedAt + ',"payload":' + event.payload + contentHash + "," + this.#batchId +
      ',"event_hash":"' + eventHash + '"}';
    return { line, eventHash };
  }
}
