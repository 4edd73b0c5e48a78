/**
 * Recomputes batch digests and event hashes (`event/`) from stored lines. Copies members verbatim,
 * since lines differ from RFC 8785 form only in the order of members.
 */
import { Buffer } from "node:buffer";
import { sha256Hex } from "../../event/hash.ts";
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
import * as layout from "./line_layout.ts";
import type { StoredEvent } from "./stored_event.ts";

const EVENTS = pieceOf('{"events":[');
const SOURCE_OF_BATCH = pieceOf('],"source":"');
const VERSION = pieceOf('","v":1}');

const OPEN = pieceOf("{");
const CLOSE = pieceOf("}");
const COMMA = pieceOf(",");

/** Computes the digests of batches, one after another. */
export class BatchDigester {
  readonly #text = new HashedText();
  /** The batch's source, escaped; null before its first event. */
  #source: Piece | null = null;

  add(event: StoredEvent): void {
    const text = this.#text;
    text.reserve(EVENTS.sizeBytes + bytesOf(event));
    text.put(this.#source === null ? EVENTS : COMMA);
    this.#source ??= pieceOf(viewOf(event.bytes, event.sourceStart, event.sourceEnd));
    putItem(text, event);
  }

  /** Returns the digest, 64 lowercase hex digits. The next event starts a new batch. */
  finish(): string {
    const source = this.#source ?? pieceOf("");
    this.#source = null;
    this.#text.reserve(SOURCE_OF_BATCH.sizeBytes + source.sizeBytes + VERSION.sizeBytes);
    for (const piece of [SOURCE_OF_BATCH, source, VERSION]) this.#text.put(piece);
    return this.#text.finish();
  }
}

export class EventHasher {
  readonly #text = new HashedText();

  /** Returns the SHA-256 of the event's canonical envelope, 64 lowercase hex digits. */
  hash(event: StoredEvent): string {
    this.#text.reserve(bytesOf(event));
    putEnvelope(this.#text, event);
    return this.#text.finish();
  }
}

/** Reusable buffer for hash input. */
class HashedText {
  #bytes: Buffer = Buffer.allocUnsafeSlow(64 * 1024);
  #view = viewFor(this.#bytes);
  #length = 0;

  reserve(sizeBytes: number): void {
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

  /** Appends a member from a line: a comma, `name` and the value in [start, end), with quotes. */
  putMember(event: StoredEvent, name: Piece, start: number, end: number): void {
    // The name piece begins with the closing quote of the previous value.
    this.putPart(event, start - name.sizeBytes + 1, end + 1);
  }

  /** Returns the SHA-256 as 64 lowercase hex digits, and clears the input. */
  finish(): string {
    const digest = sha256Hex(viewOf(this.#bytes, 0, this.#length));
    this.#length = 0;
    return digest;
  }
}

/** Returns an upper bound on the size of an item or envelope: the line without its payload. */
function bytesOf({ eventIdStart, payloadStart, payloadEnd, eventHashStart }: StoredEvent): number {
  return payloadStart - eventIdStart + eventHashStart - payloadEnd;
}

/** Appends an event in the form that the batch digest covers. */
function putItem(text: HashedText, event: StoredEvent): void {
  const { contentHashStart, kindStart, recordKeyStart, streamStart } = event;
  text.put(OPEN);
  // This piece begins with the comma, not with a closing quote, so `putMember()` omits the comma.
  text.putMember(event, layout.CONTENT_HASH, contentHashStart, contentHashStart + HASH_CHARS);
  // In the line, too, `occurred_at` directly follows `kind`, so one copy covers both.
  const kindEnd = event.occurredAtStart < 0 ? event.kindEnd : event.occurredAtEnd;
  text.putMember(event, layout.KIND, kindStart, kindEnd);
  text.putMember(event, layout.RECORD_KEY, recordKeyStart, event.recordKeyEnd);
  text.putMember(event, layout.STREAM, streamStart, event.streamEnd);
  text.put(CLOSE);
}

function putEnvelope(text: HashedText, event: StoredEvent): void {
  const { batchIdStart, contentHashStart, eventIdStart, observedAtStart } = event;
  text.put(OPEN);
  // The first member has no comma.
  text.putPart(event, batchIdStart - layout.BATCH_ID.sizeBytes + 2, event.batchIdEnd + 1);
  text.put(COMMA);
  text.putMember(event, layout.CONTENT_HASH, contentHashStart, contentHashStart + HASH_CHARS);
  text.put(COMMA);
  text.putMember(event, layout.OPENING, eventIdStart, eventIdStart + UUID_CHARS);
  text.putMember(event, layout.KIND, event.kindStart, event.kindEnd);
  const observedAtEnd = observedAtStart + layout.OBSERVED_AT_CHARS;
  text.putMember(event, layout.OBSERVED_AT, observedAtStart, observedAtEnd);
  if (event.occurredAtStart >= 0) {
    text.putMember(event, layout.OCCURRED_AT, event.occurredAtStart, event.occurredAtEnd);
  }
  text.putMember(event, layout.RECORD_KEY, event.recordKeyStart, event.recordKeyEnd);
  // In the line, too, `stream` directly follows `source`, so one copy covers both.
  text.putMember(event, layout.SOURCE, event.sourceStart, event.streamEnd);
  text.put(CLOSE);
}
