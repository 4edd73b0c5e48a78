/**
 * Recomputes batch digests and event hashes (event/batch_encoder.ts) from stored
 * lines. Canonical JSON is made of the bytes of the line, whole members with their names: they
 * stand in it as RFC 8785 spells them, only in another order.
 */
import { Buffer } from "node:buffer";
import { sha256Hex } from "../../event/hash.ts";
import { DigestText } from "./digest_text.ts";
import { HASH_BYTES, HASH_CHARS, pieceOf, putBytes, UUID_CHARS, viewOf } from "./line_bytes.ts";
import { OBSERVED_AT_CHARS } from "./line_layout.ts";
import type { LineMembers, LineRow } from "../segment/line_row.ts";
import type { StoredEvent } from "./stored_event.ts";

/** Room for an envelope; a longer one gets its own. */
const ENVELOPE_BYTES = 64 * 1024;

const EVENTS = Buffer.from('{"events":[');
const SOURCE_OF_BATCH = Buffer.from('],"source":"');
const VERSION = Buffer.from('","v":1}');

const OPEN = Buffer.from("{");
const CLOSE = Buffer.from("}");
const COMMA = Buffer.from(",");

const CONTENT_HASH = pieceOf(Buffer.from('{"content_hash":"'));
const KIND = pieceOf(Buffer.from('","kind":"'));
const OCCURRED_AT = pieceOf(Buffer.from('","occurred_at":"'));
const RECORD_KEY = pieceOf(Buffer.from('","record_key":"'));
const STREAM = pieceOf(Buffer.from('","stream":"'));
const ITEM_END = pieceOf(Buffer.from('"}'));

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
  readonly #text = new DigestText();
  #events = 0;
  /** Source of the batch as its lines spell it. */
  #source: Uint8Array = new Uint8Array();

  /** Takes in the next event of the batch. */
  add(event: StoredEvent): void {
    const { bytes, sourceStart, sourceEnd } = event;
    this.#startItem(bytesOf(event), bytes, sourceStart, sourceEnd);
    putItem(this.#text, event);
  }

  /** Takes in the next event of the batch, which is a row of a segment. */
  addRow(row: LineRow): void {
    const { bytes, start, end } = row.members.source;
    this.#startItem(row.lineBytesMax, bytes, start, end);
    putRowItem(this.#text, row.members);
  }

  /** The digest, 64 lowercase hex digits. The next event starts another batch. */
  finish(): string {
    const text = this.#text;
    text.reserve(SOURCE_OF_BATCH.length + this.#source.length + VERSION.length);
    text.put(SOURCE_OF_BATCH);
    text.put(this.#source);
    text.put(VERSION);
    this.#events = 0;
    return text.finish();
  }

  #startItem(itemBytesMax: number, bytes: Uint8Array, sourceStart: number, sourceEnd: number) {
    this.#text.reserve(EVENTS.length + itemBytesMax);
    if (this.#events === 0) {
      this.#source = Uint8Array.from(viewOf(bytes, sourceStart, sourceEnd));
    }
    this.#text.put(this.#events === 0 ? EVENTS : COMMA);
    this.#events += 1;
  }
}

/** Recomputes event hashes. */
export class EventHasher {
  #text: Buffer = Buffer.allocUnsafeSlow(ENVELOPE_BYTES);
  /** Views of the text by their length: envelopes have few, and a view costs more than a look. */
  #views: Uint8Array[] = [];

  /** SHA-256 of the event's canonical envelope, 64 lowercase hex digits. */
  hash(event: StoredEvent): string {
    const bytesMax = bytesOf(event);
    if (bytesMax > this.#text.length) {
      this.#text = Buffer.allocUnsafeSlow(2 * bytesMax);
      this.#views = [];
    }
    const end = putEnvelope(this.#text, 0, event);
    return sha256Hex(this.#views[end] ??= viewOf(this.#text, 0, end));
  }
}

/** More than an item or an envelope takes: all of the line but its payload. */
function bytesOf({ eventIdStart, payloadStart, payloadEnd, eventHashStart }: StoredEvent): number {
  return payloadStart - eventIdStart + eventHashStart - payloadEnd;
}

/** An event as the digest of its batch covers it. */
function putItem(text: DigestText, event: StoredEvent): void {
  const { bytes, contentHashStart, kindStart, recordKeyStart, streamStart } = event;
  text.put(OPEN);
  // Without its comma.
  const hashFrom = contentHashStart - CONTENT_HASH_NAME_BYTES + 1;
  text.put(bytes, hashFrom, contentHashStart + HASH_CHARS + 1);
  // In the line, too, an `occurred_at` comes next.
  const kindEnd = event.occurredAtStart < 0 ? event.kindEnd : event.occurredAtEnd;
  text.put(bytes, kindStart - KIND_NAME_BYTES, kindEnd + 1);
  text.put(bytes, recordKeyStart - RECORD_KEY_NAME_BYTES, event.recordKeyEnd + 1);
  text.put(bytes, streamStart - STREAM_NAME_BYTES, event.streamEnd + 1);
  text.put(CLOSE);
}

/** The same of the members of a row. */
function putRowItem(text: DigestText, members: LineMembers): void {
  const { contentHash, kind, occurredAt, recordKey, stream } = members;
  text.putPiece(CONTENT_HASH);
  text.putHex(contentHash.bytes, contentHash.start, HASH_BYTES);
  text.putPiece(KIND);
  text.putView(kind.view, kind.start, kind.end);
  if (occurredAt !== null) {
    text.putPiece(OCCURRED_AT);
    text.putView(occurredAt.view, occurredAt.start, occurredAt.end);
  }
  text.putPiece(RECORD_KEY);
  text.putView(recordKey.view, recordKey.start, recordKey.end);
  text.putPiece(STREAM);
  text.putView(stream.view, stream.start, stream.end);
  text.putPiece(ITEM_END);
}

/** The canonical envelope of an event; returns where it ends. */
function putEnvelope(into: Uint8Array, start: number, event: StoredEvent): number {
  const { bytes, batchIdStart, contentHashStart, eventIdStart, kindStart, observedAtStart } = event;
  const { recordKeyStart } = event;
  let at = start;
  at = putBytes(into, at, OPEN);
  // Without its comma, as the `event_id` comes.
  at = putBytes(into, at, bytes, batchIdStart - BATCH_ID_NAME_BYTES + 1, event.batchIdEnd + 1);
  const hashFrom = contentHashStart - CONTENT_HASH_NAME_BYTES;
  at = putBytes(into, at, bytes, hashFrom, contentHashStart + HASH_CHARS + 1);
  at = putBytes(into, at, COMMA);
  const idFrom = eventIdStart - EVENT_ID_NAME_BYTES + 1;
  at = putBytes(into, at, bytes, idFrom, eventIdStart + UUID_CHARS + 1);
  at = putBytes(into, at, bytes, kindStart - KIND_NAME_BYTES, event.kindEnd + 1);
  const observedAtFrom = observedAtStart - OBSERVED_AT_NAME_BYTES;
  at = putBytes(into, at, bytes, observedAtFrom, observedAtStart + OBSERVED_AT_CHARS + 1);
  if (event.occurredAtStart >= 0) {
    const occurredAtFrom = event.occurredAtStart - OCCURRED_AT_NAME_BYTES;
    at = putBytes(into, at, bytes, occurredAtFrom, event.occurredAtEnd + 1);
  }
  at = putBytes(into, at, bytes, recordKeyStart - RECORD_KEY_NAME_BYTES, event.recordKeyEnd + 1);
  // In the line, too, the `stream` follows the `source`.
  at = putBytes(into, at, bytes, event.sourceStart - SOURCE_NAME_BYTES, event.streamEnd + 1);
  at = putBytes(into, at, CLOSE);
  return at;
}
