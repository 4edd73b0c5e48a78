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
  copyBytes,
  hasAt,
  HASH_BYTES,
  HASH_CHARS,
  pieceOf,
  putHex,
  putPiece,
  putUuid,
  stringEnd,
  stringStart,
  UUID_CHARS,
  viewOf,
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

/** A copy of at least this many bytes is left to `Uint8Array.set`. */
const LONG_COPY_BYTES = 512;

const OPENING_PIECE = pieceOf(OPENING);
const SOURCE_PIECE = pieceOf(SOURCE);
const STREAM_PIECE = pieceOf(STREAM);
const RECORD_KEY_PIECE = pieceOf(RECORD_KEY);
const KIND_PIECE = pieceOf(KIND);
const OCCURRED_AT_PIECE = pieceOf(OCCURRED_AT);
const OBSERVED_AT_PIECE = pieceOf(OBSERVED_AT);
const PAYLOAD_PIECE = pieceOf(PAYLOAD);
const CONTENT_HASH_PIECE = pieceOf(CONTENT_HASH);
const BATCH_ID_PIECE = pieceOf(BATCH_ID);
const EVENT_HASH_PIECE = pieceOf(EVENT_HASH);
const CLOSING_PIECE = pieceOf(Buffer.from('"}\n'));

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
   * Puts a line together, LF included, where `into` has room for it; returns where it ends.
   * @param view of `into`.
   */
  static put(into: Buffer, view: DataView, start: number, members: LineMembers): number {
    let at = putPiece(view, start, OPENING_PIECE);
    at = putUuid(view, at, members.eventId.bytes, members.eventId.start);
    at = putSlice(view, putPiece(view, at, SOURCE_PIECE), members.source);
    at = putSlice(view, putPiece(view, at, STREAM_PIECE), members.stream);
    at = putSlice(view, putPiece(view, at, RECORD_KEY_PIECE), members.recordKey);
    at = putSlice(view, putPiece(view, at, KIND_PIECE), members.kind);
    if (members.occurredAt !== null) {
      at = putSlice(view, putPiece(view, at, OCCURRED_AT_PIECE), members.occurredAt);
    }
    at = putSlice(view, putPiece(view, at, OBSERVED_AT_PIECE), members.observedAt);
    at = putLong(into, view, putPiece(view, at, PAYLOAD_PIECE), members.payload);
    at = putHash(view, putPiece(view, at, CONTENT_HASH_PIECE), members.contentHash);
    at = putSlice(view, putPiece(view, at, BATCH_ID_PIECE), members.batchId);
    at = putHash(view, putPiece(view, at, EVENT_HASH_PIECE), members.eventHash);
    return putPiece(view, at, CLOSING_PIECE);
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

/** A run of bytes somewhere. */
export interface Slice {
  bytes: Uint8Array;
  /** Of `bytes`. */
  view: DataView;
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

function putSlice(into: DataView, at: number, { view, start, end }: Slice): number {
  copyBytes(view, start, into, at, end - start);
  return at + end - start;
}

function putLong(into: Uint8Array, view: DataView, at: number, slice: Slice): number {
  const { bytes, start, end } = slice;
  if (end - start < LONG_COPY_BYTES) return putSlice(view, at, slice);
  into.set(viewOf(bytes, start, end), at);
  return at + end - start;
}

function putHash(into: DataView, at: number, { bytes, start }: Slice): number {
  return putHex(into, at, bytes, start, HASH_BYTES);
}
