/**
 * A stored event line (`line_layout.ts`) taken apart: finds places and checks what lies between
 * them; nothing is decoded or copied.
 */
import { Buffer } from "node:buffer";
import { hasAt, HASH_CHARS, stringEnd, stringStart, UUID_CHARS } from "./line_bytes.ts";
import {
  BATCH_ID,
  CLOSING,
  CONTENT_HASH,
  EVENT_HASH,
  KIND,
  OBSERVED_AT,
  OBSERVED_AT_CHARS,
  OCCURRED_AT,
  OPENING,
  PAYLOAD,
  RECORD_KEY,
  SOURCE,
  STREAM,
} from "./line_layout.ts";

/**
 * Where the members of one line are: offsets into `bytes`. Strings are given without their quotes
 * and as they are spelled in the line, escapes included. One object serves for many lines.
 */
export class StoredEvent {
  bytes: Buffer = Buffer.alloc(0);
  /** 36 characters. */
  eventIdStart = 0;
  sourceStart = 0;
  sourceEnd = 0;
  streamStart = 0;
  streamEnd = 0;
  recordKeyStart = 0;
  recordKeyEnd = 0;
  kindStart = 0;
  kindEnd = 0;
  /** -1 when the event has none. */
  occurredAtStart = -1;
  occurredAtEnd = -1;
  /** 24 characters. */
  observedAtStart = 0;
  payloadStart = 0;
  payloadEnd = 0;
  /** 64 hex digits. */
  contentHashStart = 0;
  batchIdStart = 0;
  batchIdEnd = 0;
  /** 64 hex digits. */
  eventHashStart = 0;

  /**
   * Takes the line apart that lies in [start, end) of `bytes`, without its LF. False when it is
   * none; the places mean nothing then.
   */
  take(bytes: Buffer, start: number, end: number): boolean {
    this.bytes = bytes;
    return this.#takeEnd(start, end) && this.#takeStart(start);
  }

  get eventId(): string {
    return this.bytes.toString("latin1", this.eventIdStart, this.eventIdStart + UUID_CHARS);
  }

  get contentHash(): string {
    return this.bytes.toString("latin1", this.contentHashStart, this.contentHashStart + HASH_CHARS);
  }

  get eventHash(): string {
    return this.bytes.toString("latin1", this.eventHashStart, this.eventHashStart + HASH_CHARS);
  }

  /** From the payload's end on places follow from the end of the line. */
  #takeEnd(start: number, end: number): boolean {
    const { bytes } = this;
    const closing = end - CLOSING.length;
    this.eventHashStart = closing - HASH_CHARS;
    this.batchIdEnd = this.eventHashStart - EVENT_HASH.length;
    if (this.batchIdEnd <= start || !hasAt(bytes, closing, CLOSING)) return false;
    if (!hasAt(bytes, this.batchIdEnd, EVENT_HASH)) return false;
    this.batchIdStart = stringStart(bytes, this.batchIdEnd, start);
    this.contentHashStart = this.batchIdStart - BATCH_ID.length - HASH_CHARS;
    this.payloadEnd = this.contentHashStart - CONTENT_HASH.length;
    return this.payloadEnd > start &&
      hasAt(bytes, this.batchIdStart - BATCH_ID.length, BATCH_ID) &&
      hasAt(bytes, this.payloadEnd, CONTENT_HASH);
  }

  #takeStart(start: number): boolean {
    const { bytes } = this;
    const limit = this.payloadEnd;
    this.eventIdStart = start + OPENING.length;
    const afterId = this.eventIdStart + UUID_CHARS;
    if (!hasAt(bytes, start, OPENING) || !hasAt(bytes, afterId, SOURCE)) return false;
    this.sourceStart = afterId + SOURCE.length;
    this.sourceEnd = stringEnd(bytes, this.sourceStart, limit);
    if (this.sourceEnd < 0 || !hasAt(bytes, this.sourceEnd, STREAM)) return false;
    this.streamStart = this.sourceEnd + STREAM.length;
    this.streamEnd = stringEnd(bytes, this.streamStart, limit);
    if (this.streamEnd < 0 || !hasAt(bytes, this.streamEnd, RECORD_KEY)) return false;
    this.recordKeyStart = this.streamEnd + RECORD_KEY.length;
    this.recordKeyEnd = stringEnd(bytes, this.recordKeyStart, limit);
    if (this.recordKeyEnd < 0 || !hasAt(bytes, this.recordKeyEnd, KIND)) return false;
    this.kindStart = this.recordKeyEnd + KIND.length;
    this.kindEnd = stringEnd(bytes, this.kindStart, limit);
    return this.kindEnd >= 0 && this.#takeTimes(this.kindEnd, limit);
  }

  #takeTimes(start: number, limit: number): boolean {
    const { bytes } = this;
    let at = start;
    this.occurredAtStart = -1;
    this.occurredAtEnd = -1;
    if (hasAt(bytes, at, OCCURRED_AT)) {
      this.occurredAtStart = at + OCCURRED_AT.length;
      this.occurredAtEnd = at = stringEnd(bytes, this.occurredAtStart, limit);
      if (at < 0) return false;
    }
    if (!hasAt(bytes, at, OBSERVED_AT)) return false;
    this.observedAtStart = at + OBSERVED_AT.length;
    const observedAtEnd = this.observedAtStart + OBSERVED_AT_CHARS;
    this.payloadStart = observedAtEnd + PAYLOAD.length;
    return hasAt(bytes, observedAtEnd, PAYLOAD) && this.payloadStart < limit;
  }
}
