/** Parses stored event lines (`line_layout.ts`) into offsets, without decoding or copying. */
import { Buffer } from "node:buffer";
import * as layout from "../../event/line_layout.ts";
import { HASH_CHARS, UUID_CHARS } from "../../event/line_layout.ts";
import {
  hasPieceAt,
  LF,
  needsEscape,
  sameBytes,
  spelledText,
  stringEnd,
  stringStart,
  viewOf,
} from "./line_bytes.ts";

/** Decodes a member that usually has the value of the line before. */
class RepeatedText {
  #bytes = new Uint8Array(0);
  #text = "";

  decode(bytes: Buffer, start: number, end: number, decode: typeof latin1Text): string {
    if (!sameBytes(bytes, start, end, this.#bytes)) {
      this.#bytes = viewOf(bytes, start, end).slice();
      this.#text = decode(bytes, start, end);
    }
    return this.#text;
  }
}

/**
 * The members in one line, as offsets into `bytes`. String ranges exclude the quotes and are still
 * escaped. One object is reused for many lines.
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
  /** -1 if the event has none. */
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
  readonly #stream = new RepeatedText();
  readonly #kind = new RepeatedText();

  /** Parses the line [start, end) of `bytes`, without its LF; returns false if it is malformed. */
  take(bytes: Buffer, start: number, end: number): boolean {
    this.bytes = bytes;
    return this.#takeEnd(start, end) && this.#takeStart(start, this.payloadEnd);
  }

  /** Parses the line at `start` in `bytes`, up to its LF; returns its end, or 0 if malformed. */
  takeLine(bytes: Buffer, start: number): number {
    const end = bytes.indexOf(LF, start);
    return end >= 0 && this.take(bytes, start, end) ? end + 1 : 0;
  }

  get eventId(): string {
    return this.bytes.toString("latin1", this.eventIdStart, this.eventIdStart + UUID_CHARS);
  }

  get contentHash(): string {
    return this.bytes.toString("latin1", this.contentHashStart, this.contentHashStart + HASH_CHARS);
  }

  get stream(): string {
    return this.#stream.decode(this.bytes, this.streamStart, this.streamEnd, latin1Text);
  }

  /** The decoded `kind` of an event in canonical form. */
  get kind(): string {
    return this.#kind.decode(this.bytes, this.kindStart, this.kindEnd, unescaped);
  }

  /** The decoded `record_key` of an event in canonical form. */
  get recordKey(): string {
    return unescaped(this.bytes, this.recordKeyStart, this.recordKeyEnd);
  }

  get eventHash(): string {
    return this.bytes.toString("latin1", this.eventHashStart, this.eventHashStart + HASH_CHARS);
  }

  /** Locates the members after `start`, working backwards from the end of the line. */
  #takeEnd(start: number, end: number): boolean {
    const { bytes } = this;
    const closing = end - layout.CLOSING.sizeBytes;
    this.eventHashStart = closing - HASH_CHARS;
    this.batchIdEnd = this.eventHashStart - layout.EVENT_HASH.sizeBytes;
    if (this.batchIdEnd <= start || !hasPieceAt(bytes, closing, layout.CLOSING)) return false;
    if (!hasPieceAt(bytes, this.batchIdEnd, layout.EVENT_HASH)) return false;
    this.batchIdStart = stringStart(bytes, this.batchIdEnd, start);
    this.contentHashStart = this.batchIdStart - layout.BATCH_ID.sizeBytes - HASH_CHARS;
    this.payloadEnd = this.contentHashStart - layout.CONTENT_HASH.sizeBytes;
    return this.payloadEnd > start &&
      hasPieceAt(bytes, this.batchIdStart - layout.BATCH_ID.sizeBytes, layout.BATCH_ID) &&
      hasPieceAt(bytes, this.payloadEnd, layout.CONTENT_HASH);
  }

  /** Locates the members up to the start of the payload, which must be before `limit`. */
  #takeStart(start: number, limit: number): boolean {
    const { bytes } = this;
    this.eventIdStart = start + layout.OPENING.sizeBytes;
    const afterId = this.eventIdStart + UUID_CHARS;
    if (!hasPieceAt(bytes, start, layout.OPENING) || !hasPieceAt(bytes, afterId, layout.SOURCE)) {
      return false;
    }
    this.sourceStart = afterId + layout.SOURCE.sizeBytes;
    this.sourceEnd = stringEnd(bytes, this.sourceStart, limit);
    if (this.sourceEnd < 0 || !hasPieceAt(bytes, this.sourceEnd, layout.STREAM)) return false;
    this.streamStart = this.sourceEnd + layout.STREAM.sizeBytes;
    this.streamEnd = stringEnd(bytes, this.streamStart, limit);
    if (this.streamEnd < 0 || !hasPieceAt(bytes, this.streamEnd, layout.RECORD_KEY)) return false;
    this.recordKeyStart = this.streamEnd + layout.RECORD_KEY.sizeBytes;
    this.recordKeyEnd = stringEnd(bytes, this.recordKeyStart, limit);
    if (this.recordKeyEnd < 0 || !hasPieceAt(bytes, this.recordKeyEnd, layout.KIND)) return false;
    this.kindStart = this.recordKeyEnd + layout.KIND.sizeBytes;
    this.kindEnd = stringEnd(bytes, this.kindStart, limit);
    return this.kindEnd >= 0 && this.#takeTimes(this.kindEnd, limit);
  }

  #takeTimes(start: number, limit: number): boolean {
    const { bytes } = this;
    let at = start;
    this.occurredAtStart = -1;
    this.occurredAtEnd = -1;
    if (hasPieceAt(bytes, at, layout.OCCURRED_AT)) {
      this.occurredAtStart = at + layout.OCCURRED_AT.sizeBytes;
      this.occurredAtEnd = at = stringEnd(bytes, this.occurredAtStart, limit);
      if (at < 0) return false;
    }
    if (!hasPieceAt(bytes, at, layout.OBSERVED_AT)) return false;
    this.observedAtStart = at + layout.OBSERVED_AT.sizeBytes;
    const observedAtEnd = this.observedAtStart + layout.OBSERVED_AT_CHARS;
    this.payloadStart = observedAtEnd + layout.PAYLOAD.sizeBytes;
    return hasPieceAt(bytes, observedAtEnd, layout.PAYLOAD) && this.payloadStart < limit;
  }
}

function latin1Text(bytes: Buffer, start: number, end: number): string {
  return bytes.toString("latin1", start, end);
}

/** Decodes a string in canonical form. */
function unescaped(bytes: Buffer, start: number, end: number): string {
  const spelled = bytes.toString("utf8", start, end);
  return needsEscape(bytes, start, end) ? JSON.parse(`"${spelled}"`) : spelled;
}

/** A batch's source and id in JSON encoding, so that events can be matched by their bytes. */
export class SpelledBatch {
  readonly #source: Buffer;
  readonly #batchId: Buffer;

  constructor({ source, batch_id }: { source: string; batch_id: string }) {
    this.#source = spelledText(source);
    this.#batchId = spelledText(batch_id);
  }

  /** Whether an event belongs to this batch. */
  holds({ bytes, sourceStart, sourceEnd, batchIdStart, batchIdEnd }: StoredEvent): boolean {
    return sameBytes(bytes, sourceStart, sourceEnd, this.#source) &&
      sameBytes(bytes, batchIdStart, batchIdEnd, this.#batchId);
  }
}
