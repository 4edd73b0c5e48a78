/**
 * Recomputes batch digests (event/digest.ts) and event hashes (event/envelope.ts) from stored
 * lines. Canonical JSON is made of the bytes of the line, whole members with their names: they
 * stand in it as RFC 8785 spells them, only in another order.
 */
import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import { sha256Hex } from "../event/hash.ts";
import { HASH_CHARS, putBytes, UUID_CHARS, viewOf } from "./line_bytes.ts";
import { OBSERVED_AT_CHARS, type StoredEvent } from "./stored_event.ts";

/** Texts up to here are hashed in one call, longer ones piece by piece. The buffer has twice it. */
const PIECE_BYTES = 64 * 1024;

const EVENTS = Buffer.from('{"events":[');
const SOURCE_OF_BATCH = Buffer.from('],"source":"');
const VERSION = Buffer.from('","v":1}');

const OPEN = 0x7b;
const CLOSE = 0x7d;
const COMMA = 0x2c;

/** What stands before the value of a member, its comma included. */
const KIND_NAME_BYTES = ',"kind":"'.length;
const EVENT_ID_NAME_BYTES = ',"event_id":"'.length;
const SOURCE_NAME_BYTES = ',"source":"'.length;
const STREAM_NAME_BYTES = ',"stream":"'.length;
const BATCH_ID_NAME_BYTES = ',"batch_id":"'.length;
const RECORD_KEY_NAME_BYTES = ',"record_key":"'.length;
const OBSERVED_AT_NAME_BYTES = ',"observed_at":"'.length;
const OCCURRED_AT_NAME_BYTES = ',"occurred_at":"'.length;
const CONTENT_HASH_NAME_BYTES = ',"content_hash":"'.length;

/** The digest of one batch after the other. */
export class BatchDigester {
  #text: Buffer = Buffer.allocUnsafeSlow(2 * PIECE_BYTES);
  #length = 0;
  /** Has what does not fit the text any more; null while all does. */
  #hash: Hash | null = null;
  #events = 0;
  /** Source of the batch as its lines spell it. */
  #source: Uint8Array = new Uint8Array();

  /** Takes in the next event of the batch. */
  add(event: StoredEvent): void {
    this.#text = withRoom(this.#text, this.#length, bytesOf(event));
    if (this.#events === 0) {
      this.#source = Uint8Array.from(event.bytes.subarray(event.sourceStart, event.sourceEnd));
      this.#length = putBytes(this.#text, 0, EVENTS);
    } else {
      this.#text[this.#length++] = COMMA;
    }
    this.#length = putItem(this.#text, this.#length, event);
    this.#events += 1;
    if (this.#length > PIECE_BYTES) {
      this.#hash ??= createHash("sha256");
      this.#hash.update(this.#text.subarray(0, this.#length));
      this.#length = 0;
    }
  }

  /** The digest, 64 lowercase hex digits. The next event starts another batch. */
  finish(): string {
    let end = putBytes(this.#text, this.#length, SOURCE_OF_BATCH);
    end = putBytes(this.#text, end, this.#source);
    end = putBytes(this.#text, end, VERSION);
    const rest = viewOf(this.#text, 0, end);
    const digest = this.#hash === null ? sha256Hex(rest) : this.#hash.update(rest).digest("hex");
    this.#length = 0;
    this.#hash = null;
    this.#events = 0;
    return digest;
  }
}

/** Recomputes event hashes. */
export class EventHasher {
  #text: Buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
  /** Views of the text by their length: envelopes have few, and a view costs more than a look. */
  #views: Uint8Array[] = [];

  /** SHA-256 of the event's canonical envelope, 64 lowercase hex digits. */
  hash(event: StoredEvent): string {
    const text = withRoom(this.#text, 0, bytesOf(event));
    if (text !== this.#text) {
      this.#text = text;
      this.#views = [];
    }
    const end = putEnvelope(text, 0, event);
    return sha256Hex(this.#views[end] ??= viewOf(text, 0, end));
  }
}

/** More than an item or an envelope takes: all of the line but its payload. */
function bytesOf({ eventIdStart, payloadStart, payloadEnd, eventHashStart }: StoredEvent): number {
  return payloadStart - eventIdStart + eventHashStart - payloadEnd;
}

/** A buffer with so much room behind what is used of it. */
function withRoom(bytes: Buffer, usedBytes: number, roomBytes: number): Buffer {
  if (usedBytes + roomBytes <= bytes.length) return bytes;
  const larger = Buffer.allocUnsafeSlow(2 * (usedBytes + roomBytes));
  bytes.copy(larger, 0, 0, usedBytes);
  return larger;
}

/** An event as the digest of its batch covers it; returns where it ends. */
function putItem(into: Uint8Array, start: number, event: StoredEvent): number {
  const { bytes, contentHashStart, kindStart, streamStart } = event;
  let at = start;
  into[at++] = OPEN;
  // Without its comma.
  const hashFrom = contentHashStart - CONTENT_HASH_NAME_BYTES + 1;
  at = putBytes(into, at, bytes, hashFrom, contentHashStart + HASH_CHARS + 1);
  // In the line, too, an `occurred_at` comes next.
  const kindEnd = event.occurredAtStart < 0 ? event.kindEnd : event.occurredAtEnd;
  at = putBytes(into, at, bytes, kindStart - KIND_NAME_BYTES, kindEnd + 1);
  at = putRecordKey(into, at, event);
  at = putBytes(into, at, bytes, streamStart - STREAM_NAME_BYTES, event.streamEnd + 1);
  into[at++] = CLOSE;
  return at;
}

/** The canonical envelope of an event; returns where it ends. */
function putEnvelope(into: Uint8Array, start: number, event: StoredEvent): number {
  const { bytes, batchIdStart, contentHashStart, eventIdStart, kindStart, observedAtStart } = event;
  let at = start;
  into[at++] = OPEN;
  // Without its comma, as the `event_id` comes.
  at = putBytes(into, at, bytes, batchIdStart - BATCH_ID_NAME_BYTES + 1, event.batchIdEnd + 1);
  const hashFrom = contentHashStart - CONTENT_HASH_NAME_BYTES;
  at = putBytes(into, at, bytes, hashFrom, contentHashStart + HASH_CHARS + 1);
  into[at++] = COMMA;
  const idFrom = eventIdStart - EVENT_ID_NAME_BYTES + 1;
  at = putBytes(into, at, bytes, idFrom, eventIdStart + UUID_CHARS + 1);
  at = putBytes(into, at, bytes, kindStart - KIND_NAME_BYTES, event.kindEnd + 1);
  const observedAtFrom = observedAtStart - OBSERVED_AT_NAME_BYTES;
  at = putBytes(into, at, bytes, observedAtFrom, observedAtStart + OBSERVED_AT_CHARS + 1);
  if (event.occurredAtStart >= 0) {
    const occurredAtFrom = event.occurredAtStart - OCCURRED_AT_NAME_BYTES;
    at = putBytes(into, at, bytes, occurredAtFrom, event.occurredAtEnd + 1);
  }
  at = putRecordKey(into, at, event);
  // In the line, too, the `stream` follows the `source`.
  at = putBytes(into, at, bytes, event.sourceStart - SOURCE_NAME_BYTES, event.streamEnd + 1);
  into[at++] = CLOSE;
  return at;
}

function putRecordKey(into: Uint8Array, at: number, event: StoredEvent): number {
  const { bytes, recordKeyStart, recordKeyEnd } = event;
  return putBytes(into, at, bytes, recordKeyStart - RECORD_KEY_NAME_BYTES, recordKeyEnd + 1);
}
