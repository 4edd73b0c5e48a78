/**
 * A stored event line taken apart and put together. A line is one JSON object, without spaces and
 * in this order (docs/format.md):
 *
 *   {"event_id":"<36>","source":"<name>","stream":"<name>","record_key":<string>,"kind":<string>
 *   [,"occurred_at":"<time>"],"observed_at":"<24>","payload":<JSON>,"content_hash":"<64>"
 *   ,"batch_id":<string>,"event_hash":"<64>"}
 *
 * Taking apart finds places and checks what lies between them; nothing is decoded or copied.
 */
import { Buffer } from "node:buffer";
import {
  hasAt,
  HASH_BYTES,
  HASH_CHARS,
  putBytes,
  putHex,
  putUuid,
  stringEnd,
  stringStart,
  UUID_CHARS,
} from "./line_bytes.ts";

const OPENING = Buffer.from('{"event_id":"');
const SOURCE = Buffer.from('","source":"');
const STREAM = Buffer.from('","stream":"');
const RECORD_KEY = Buffer.from('","record_key":"');
const KIND = Buffer.from('","kind":"');
const OCCURRED_AT = Buffer.from('","occurred_at":"');
const OBSERVED_AT = Buffer.from('","observed_at":"');
const PAYLOAD = Buffer.from('","payload":');
const CONTENT_HASH = Buffer.from(',"content_hash":"');
const BATCH_ID = Buffer.from('","batch_id":"');
const EVENT_HASH = Buffer.from('","event_hash":"');
const CLOSING = Buffer.from('"}');
const LF = 0x0a;

/** `YYYY-MM-DDTHH:MM:SS.mmmZ` */
export const OBSERVED_AT_CHARS = 24;

/** Bytes of a line, LF included, beside the values of its strings and payload. */
export const LINE_FIXED_BYTES: number = [
  ...[OPENING, SOURCE, STREAM, RECORD_KEY, KIND, OCCURRED_AT, OBSERVED_AT, PAYLOAD],
  ...[CONTENT_HASH, BATCH_ID, EVENT_HASH, CLOSING],
].reduce((sum, piece) => sum + piece.length, UUID_CHARS + OBSERVED_AT_CHARS + 2 * HASH_CHARS + 1);

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

  /**
   * Puts a line together, LF included, where `into` has room for it, and takes the places of its
   * members; returns where it ends.
   */
  put(into: Buffer, start: number, members: LineMembers): number {
    this.bytes = into;
    this.eventIdStart = putBytes(into, start, OPENING);
    let at = putUuid(into, this.eventIdStart, members.eventId.bytes, members.eventId.start);
    this.sourceStart = putBytes(into, at, SOURCE);
    this.sourceEnd = at = putSlice(into, this.sourceStart, members.source);
    this.streamStart = putBytes(into, at, STREAM);
    this.streamEnd = at = putSlice(into, this.streamStart, members.stream);
    this.recordKeyStart = putBytes(into, at, RECORD_KEY);
    this.recordKeyEnd = at = putSlice(into, this.recordKeyStart, members.recordKey);
    this.kindStart = putBytes(into, at, KIND);
    this.kindEnd = at = putSlice(into, this.kindStart, members.kind);
    at = this.#putTimes(into, at, members);
    this.payloadStart = putBytes(into, at, PAYLOAD);
    this.payloadEnd = at = putSlice(into, this.payloadStart, members.payload);
    this.contentHashStart = putBytes(into, at, CONTENT_HASH);
    at = putHash(into, this.contentHashStart, members.contentHash);
    this.batchIdStart = putBytes(into, at, BATCH_ID);
    this.batchIdEnd = at = putSlice(into, this.batchIdStart, members.batchId);
    this.eventHashStart = putBytes(into, at, EVENT_HASH);
    at = putHash(into, this.eventHashStart, members.eventHash);
    at = putBytes(into, at, CLOSING);
    into[at] = LF;
    return at + 1;
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

  #putTimes(into: Buffer, start: number, { occurredAt, observedAt }: LineMembers): number {
    let at = start;
    this.occurredAtStart = -1;
    this.occurredAtEnd = -1;
    if (occurredAt !== null) {
      this.occurredAtStart = putBytes(into, at, OCCURRED_AT);
      this.occurredAtEnd = at = putSlice(into, this.occurredAtStart, occurredAt);
    }
    this.observedAtStart = putBytes(into, at, OBSERVED_AT);
    return putSlice(into, this.observedAtStart, observedAt);
  }
}

/** A run of bytes somewhere. */
export interface Slice {
  bytes: Uint8Array;
  start: number;
  end: number;
}

/** The members of a line; strings as they are spelled in it, without their quotes. */
export interface LineMembers {
  /** 16 bytes. */
  eventId: Slice;
  source: Slice;
  stream: Slice;
  recordKey: Slice;
  kind: Slice;
  occurredAt: Slice | null;
  /** 24 characters. */
  observedAt: Slice;
  payload: Slice;
  /** 32 bytes. */
  contentHash: Slice;
  batchId: Slice;
  /** 32 bytes. */
  eventHash: Slice;
}

function putSlice(into: Uint8Array, at: number, { bytes, start, end }: Slice): number {
  return putBytes(into, at, bytes, start, end);
}

function putHash(into: Uint8Array, at: number, { bytes, start }: Slice): number {
  return putHex(into, at, bytes, start, HASH_BYTES);
}
