/**
 * Recomputes batch digests (event/digest.ts) and event hashes (event/envelope.ts) from stored lines.
 * Canonical JSON is made of the bytes of the line: strings stand in it as RFC 8785 spells them.
 */
import { Buffer } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import { sha256Hex } from "../event/hash.ts";
import { HASH_CHARS, putBytes, UUID_CHARS } from "./line_bytes.ts";
import { OBSERVED_AT_CHARS, type StoredEvent } from "./stored_event.ts";

/** Texts up to here are hashed in one call, longer ones piece by piece. */
const PIECE_BYTES = 64 * 1024;

const EVENTS = Buffer.from('{"events":[');
const COMMA = Buffer.from(",");
const CONTENT_HASH = Buffer.from('{"content_hash":"');
const KIND = Buffer.from('","kind":"');
const OCCURRED_AT = Buffer.from('","occurred_at":"');
const RECORD_KEY = Buffer.from('","record_key":"');
const STREAM = Buffer.from('","stream":"');
const CLOSING = Buffer.from('"}');
const SOURCE = Buffer.from('],"source":"');
const VERSION = Buffer.from('","v":1}');

const BATCH_ID = Buffer.from('{"batch_id":"');
const ENVELOPE_CONTENT_HASH = Buffer.from('","content_hash":"');
const EVENT_ID = Buffer.from('","event_id":"');
const OBSERVED_AT = Buffer.from('","observed_at":"');
const ENVELOPE_SOURCE = Buffer.from('","source":"');

/** A text put together in one buffer, which is used again for the next one. */
class Text {
  #bytes: Buffer = Buffer.allocUnsafeSlow(2 * PIECE_BYTES);
  #length = 0;

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  get length(): number {
    return this.#length;
  }

  put(from: Uint8Array, start = 0, end: number = from.length): void {
    if (this.#length + end - start > this.#bytes.length) this.#grow(end - start);
    this.#length = putBytes(this.#bytes, this.#length, from, start, end);
  }

  clear(): void {
    this.#length = 0;
  }

  #grow(sizeBytes: number): void {
    const larger = Buffer.allocUnsafeSlow(2 * (this.#bytes.length + sizeBytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/** The digest of one batch after the other. */
export class BatchDigester {
  readonly #text = new Text();
  /** Has what does not fit the text any more; null while all does. */
  #hash: Hash | null = null;
  #events = 0;
  /** Source of the batch as its lines spell it. */
  #source: Uint8Array = new Uint8Array();

  /** Takes in the next event of the batch. */
  add(event: StoredEvent): void {
    const text = this.#text;
    const { bytes } = event;
    if (this.#events === 0) this.#source = bytes.slice(event.sourceStart, event.sourceEnd);
    text.put(this.#events === 0 ? EVENTS : COMMA);
    text.put(CONTENT_HASH);
    text.put(bytes, event.contentHashStart, event.contentHashStart + HASH_CHARS);
    text.put(KIND);
    text.put(bytes, event.kindStart, event.kindEnd);
    if (event.occurredAtStart >= 0) {
      text.put(OCCURRED_AT);
      text.put(bytes, event.occurredAtStart, event.occurredAtEnd);
    }
    text.put(RECORD_KEY);
    text.put(bytes, event.recordKeyStart, event.recordKeyEnd);
    text.put(STREAM);
    text.put(bytes, event.streamStart, event.streamEnd);
    text.put(CLOSING);
    this.#events += 1;
    if (text.length > PIECE_BYTES) this.#flush();
  }

  /** The digest, 64 lowercase hex digits. The next event starts another batch. */
  finish(): string {
    this.#text.put(SOURCE);
    this.#text.put(this.#source);
    this.#text.put(VERSION);
    const digest = this.#hash === null
      ? sha256Hex(this.#text.bytes)
      : this.#hash.update(this.#text.bytes).digest("hex");
    this.#text.clear();
    this.#hash = null;
    this.#events = 0;
    return digest;
  }

  #flush(): void {
    this.#hash ??= createHash("sha256");
    this.#hash.update(this.#text.bytes);
    this.#text.clear();
  }
}

/** Recomputes event hashes. */
export class EventHasher {
  readonly #text = new Text();

  /** SHA-256 of the event's canonical envelope, 64 lowercase hex digits. */
  hash(event: StoredEvent): string {
    const text = this.#text;
    const { bytes } = event;
    text.clear();
    text.put(BATCH_ID);
    text.put(bytes, event.batchIdStart, event.batchIdEnd);
    text.put(ENVELOPE_CONTENT_HASH);
    text.put(bytes, event.contentHashStart, event.contentHashStart + HASH_CHARS);
    text.put(EVENT_ID);
    text.put(bytes, event.eventIdStart, event.eventIdStart + UUID_CHARS);
    text.put(KIND);
    text.put(bytes, event.kindStart, event.kindEnd);
    text.put(OBSERVED_AT);
    text.put(bytes, event.observedAtStart, event.observedAtStart + OBSERVED_AT_CHARS);
    if (event.occurredAtStart >= 0) {
      text.put(OCCURRED_AT);
      text.put(bytes, event.occurredAtStart, event.occurredAtEnd);
    }
    text.put(RECORD_KEY);
    text.put(bytes, event.recordKeyStart, event.recordKeyEnd);
    text.put(ENVELOPE_SOURCE);
    text.put(bytes, event.sourceStart, event.sourceEnd);
    text.put(STREAM);
    text.put(bytes, event.streamStart, event.streamEnd);
    text.put(CLOSING);
    return sha256Hex(text.bytes);
  }
}
