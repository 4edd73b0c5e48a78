/**
 * Recomputes batch digests (event/digest.ts) and event hashes (event/envelope.ts) from stored
 * lines. Canonical JSON is made of the bytes of the line: strings stand in it as RFC 8785 spells
 * them.
 */
import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import { sha256Hex } from "../event/hash.ts";
import { HASH_CHARS, putBytes, UUID_CHARS, viewOf } from "./line_bytes.ts";
import { OBSERVED_AT_CHARS, type StoredEvent } from "./stored_event.ts";

/** Texts up to here are hashed in one call, longer ones piece by piece. The buffer has twice it. */
const PIECE_BYTES = 64 * 1024;

const EVENTS = Buffer.from('{"events":[');
const COMMA = Buffer.from(",");
const SOURCE_OF_BATCH = Buffer.from('],"source":"');
const VERSION = Buffer.from('","v":1}');

/** Openings of members; each closes the string before it. */
const ITEM_CONTENT_HASH = Buffer.from('{"content_hash":"');
const BATCH_ID = Buffer.from('{"batch_id":"');
const CONTENT_HASH = Buffer.from('","content_hash":"');
const EVENT_ID = Buffer.from('","event_id":"');
const KIND = Buffer.from('","kind":"');
const OBSERVED_AT = Buffer.from('","observed_at":"');
const OCCURRED_AT = Buffer.from('","occurred_at":"');
const RECORD_KEY = Buffer.from('","record_key":"');
const SOURCE = Buffer.from('","source":"');
const STREAM = Buffer.from('","stream":"');
const CLOSING = Buffer.from('"}');

/** Bytes of an envelope beside its strings, and more than those of an item of a digest. */
const FIXED_BYTES: number = [
  ...[BATCH_ID, CONTENT_HASH, EVENT_ID, KIND, OBSERVED_AT, OCCURRED_AT, RECORD_KEY, SOURCE],
  ...[STREAM, CLOSING],
].reduce((sum, piece) => sum + piece.length, HASH_CHARS + UUID_CHARS + OBSERVED_AT_CHARS);

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
      this.#length = putBytes(this.#text, this.#length, COMMA);
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

  /** SHA-256 of the event's canonical envelope, 64 lowercase hex digits. */
  hash(event: StoredEvent): string {
    this.#text = withRoom(this.#text, 0, bytesOf(event));
    return sha256Hex(viewOf(this.#text, 0, putEnvelope(this.#text, 0, event)));
  }
}

/** What an item or an envelope takes at the most. */
function bytesOf(event: StoredEvent): number {
  const { eventIdStart, observedAtStart, batchIdStart, batchIdEnd } = event;
  return observedAtStart - eventIdStart + batchIdEnd - batchIdStart + FIXED_BYTES;
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
  const { bytes, contentHashStart } = event;
  let at = putBytes(into, start, ITEM_CONTENT_HASH);
  at = putBytes(into, at, bytes, contentHashStart, contentHashStart + HASH_CHARS);
  at = putMember(into, at, KIND, bytes, event.kindStart, event.kindEnd);
  if (event.occurredAtStart >= 0) {
    at = putMember(into, at, OCCURRED_AT, bytes, event.occurredAtStart, event.occurredAtEnd);
  }
  at = putMember(into, at, RECORD_KEY, bytes, event.recordKeyStart, event.recordKeyEnd);
  at = putMember(into, at, STREAM, bytes, event.streamStart, event.streamEnd);
  return putBytes(into, at, CLOSING);
}

/** The canonical envelope of an event; returns where it ends. */
function putEnvelope(into: Uint8Array, start: number, event: StoredEvent): number {
  const { bytes, contentHashStart, eventIdStart, observedAtStart } = event;
  let at = putMember(into, start, BATCH_ID, bytes, event.batchIdStart, event.batchIdEnd);
  const hashEnd = contentHashStart + HASH_CHARS;
  at = putMember(into, at, CONTENT_HASH, bytes, contentHashStart, hashEnd);
  at = putMember(into, at, EVENT_ID, bytes, eventIdStart, eventIdStart + UUID_CHARS);
  at = putMember(into, at, KIND, bytes, event.kindStart, event.kindEnd);
  const observedAtEnd = observedAtStart + OBSERVED_AT_CHARS;
  at = putMember(into, at, OBSERVED_AT, bytes, observedAtStart, observedAtEnd);
  if (event.occurredAtStart >= 0) {
    at = putMember(into, at, OCCURRED_AT, bytes, event.occurredAtStart, event.occurredAtEnd);
  }
  at = putMember(into, at, RECORD_KEY, bytes, event.recordKeyStart, event.recordKeyEnd);
  at = putMember(into, at, SOURCE, bytes, event.sourceStart, event.sourceEnd);
  at = putMember(into, at, STREAM, bytes, event.streamStart, event.streamEnd);
  return putBytes(into, at, CLOSING);
}

function putMember(
  into: Uint8Array,
  start: number,
  opening: Uint8Array,
  from: Uint8Array,
  valueStart: number,
  valueEnd: number,
): number {
  return putBytes(into, putBytes(into, start, opening), from, valueStart, valueEnd);
}
