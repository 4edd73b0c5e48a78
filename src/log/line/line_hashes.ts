/**
 * Recomputes batch digests and event hashes (event/encode_batch.ts) from stored lines. Members are
 * copied whole from the line, where RFC 8785 spells them the same, only in another order.
 */
import { Buffer } from "node:buffer";
import { Sha256Stream } from "../../event/hash.ts";
import {
  copyBytes,
  HASH_CHARS,
  type Piece,
  pieceOf,
  putPiece,
  UUID_CHARS,
  viewFor,
  viewOf,
} from "./line_bytes.ts";
import { OBSERVED_AT_CHARS } from "./line_layout.ts";
import type { StoredEvent } from "./stored_event.ts";

/** Longer texts are hashed in pieces of about this size. */
const PIECE_BYTES = 64 * 1024;

const EVENTS = pieceOf(Buffer.from('{"events":['));
const SOURCE_OF_BATCH = pieceOf(Buffer.from('],"source":"'));
const VERSION = pieceOf(Buffer.from('","v":1}'));

const OPEN = pieceOf(Buffer.from("{"));
const CLOSE = pieceOf(Buffer.from("}"));
const COMMA = pieceOf(Buffer.from(","));

/** Bytes from the comma before a member to its value. */
const KIND_NAME_BYTES = ',"kind":"'.length;
const EVENT_ID_NAME_BYTES = ',"event_id":"'.length;
const SOURCE_NAME_BYTES = ',"source":"'.length;
const STREAM_NAME_BYTES = ',"stream":"'.length;
const BATCH_ID_NAME_BYTES = ',"batch_id":"'.length;
const RECORD_KEY_NAME_BYTES = ',"record_key":"'.length;
const OBSERVED_AT_NAME_BYTES = ',"observed_at":"'.length;
const OCCURRED_AT_NAME_BYTES = ',"occurred_at":"'.length;
const CONTENT_HASH_NAME_BYTES = ',"content_hash":"'.length;

/** Computes batch digests, one after the other. */
export class BatchDigester {
  readonly #text = new HashedText();
  #events = 0;
  /** Source of the batch, as its lines spell it. */
  #source = pieceOf(Buffer.alloc(0));

  /** Adds the next event of the batch. */
  add(event: StoredEvent): void {
    const text = this.#text;
    text.reserve(EVENTS.sizeBytes + bytesOf(event));
    if (this.#events === 0) {
      this.#source = pieceOf(viewOf(event.bytes, event.sourceStart, event.sourceEnd));
    }
    text.put(this.#events === 0 ? EVENTS : COMMA);
    this.#events += 1;
    putItem(text, event);
  }

  /** Returns the digest, 64 lowercase hex digits. The next event starts another batch. */
  finish(): string {
    const text = this.#text;
    text.reserve(SOURCE_OF_BATCH.sizeBytes + this.#source.sizeBytes + VERSION.sizeBytes);
    text.put(SOURCE_OF_BATCH);
    text.put(this.#source);
    text.put(VERSION);
    this.#events = 0;
    return text.finish();
  }
}

export class EventHasher {
  readonly #text = new HashedText();

  /** SHA-256 of the event's canonical envelope, 64 lowercase hex digits. */
  hash(event: StoredEvent): string {
    this.#text.reserve(bytesOf(event));
    putEnvelope(this.#text, event);
    return this.#text.finish();
  }
}

/** A text that is hashed while it is written, so that memory is bounded. */
class HashedText {
  #bytes: Buffer = Buffer.allocUnsafeSlow(2 * PIECE_BYTES);
  #view = viewFor(this.#bytes);
  #length = 0;
  readonly #hash = new Sha256Stream();

  /** Makes room for `sizeBytes` more. */
  reserve(sizeBytes: number): void {
    if (this.#length > PIECE_BYTES) {
      this.#hash.update(this.#bytes.subarray(0, this.#length));
      this.#length = 0;
    }
    if (this.#length + sizeBytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * (this.#length + sizeBytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    this.#view = viewFor(larger);
  }

  put(piece: Piece): void {
    this.#length = putPiece(this.#view, this.#length, piece);
  }

  /** Appends the bytes [start, end) of a line. */
  putPart({ view }: StoredEvent, start: number, end: number): void {
    copyBytes(view, start, this.#view, this.#length, end - start);
    this.#length += end - start;
  }

  /** Returns the SHA-256, 64 lowercase hex digits, and starts another text. */
  finish(): string {
    const digest = this.#hash.end(viewOf(this.#bytes, 0, this.#length));
    this.#length = 0;
    return digest;
  }
}

/** An upper limit for the size of an item or envelope: the line without its payload. */
function bytesOf({ eventIdStart, payloadStart, payloadEnd, eventHashStart }: StoredEvent): number {
  return payloadStart - eventIdStart + eventHashStart - payloadEnd;
}

/** Appends an event as its batch digest covers it. */
function putItem(text: HashedText, event: StoredEvent): void {
  const { contentHashStart, kindStart, recordKeyStart, streamStart } = event;
  text.put(OPEN);
  // Without its comma.
  const hashFrom = contentHashStart - CONTENT_HASH_NAME_BYTES + 1;
  text.putPart(event, hashFrom, contentHashStart + HASH_CHARS + 1);
  // An `occurred_at` comes next in the line too.
  const kindEnd = event.occurredAtStart < 0 ? event.kindEnd : event.occurredAtEnd;
  text.putPart(event, kindStart - KIND_NAME_BYTES, kindEnd + 1);
  text.putPart(event, recordKeyStart - RECORD_KEY_NAME_BYTES, event.recordKeyEnd + 1);
  text.putPart(event, streamStart - STREAM_NAME_BYTES, event.streamEnd + 1);
  text.put(CLOSE);
}

/** Appends the canonical envelope of an event. */
function putEnvelope(text: HashedText, event: StoredEvent): void {
  const { batchIdStart, contentHashStart, eventIdStart, kindStart, observedAtStart } = event;
  text.put(OPEN);
  // Without its comma, like the `event_id` below.
  text.putPart(event, batchIdStart - BATCH_ID_NAME_BYTES + 1, event.batchIdEnd + 1);
  const hashFrom = contentHashStart - CONTENT_HASH_NAME_BYTES;
  text.putPart(event, hashFrom, contentHashStart + HASH_CHARS + 1);
  text.put(COMMA);
  const idFrom = eventIdStart - EVENT_ID_NAME_BYTES + 1;
  text.putPart(event, idFrom, eventIdStart + UUID_CHARS + 1);
  text.putPart(event, kindStart - KIND_NAME_BYTES, event.kindEnd + 1);
  const observedAtFrom = observedAtStart - OBSERVED_AT_NAME_BYTES;
  text.putPart(event, observedAtFrom, observedAtStart + OBSERVED_AT_CHARS + 1);
  if (event.occurredAtStart >= 0) {
    const occurredAtFrom = event.occurredAtStart - OCCURRED_AT_NAME_BYTES;
    text.putPart(event, occurredAtFrom, event.occurredAtEnd + 1);
  }
  text.putPart(event, event.recordKeyStart - RECORD_KEY_NAME_BYTES, event.recordKeyEnd + 1);
  // The `stream` follows the `source` in the line too.
  text.putPart(event, event.sourceStart - SOURCE_NAME_BYTES, event.streamEnd + 1);
  text.put(CLOSE);
}
