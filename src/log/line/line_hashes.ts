/**
 * Recomputes batch digests and event hashes (`event/`) from stored lines. Copies members verbatim,
 * since lines differ from RFC 8785 form only in the order of members.
 */
import { Buffer } from "node:buffer";
import { ByteWriter } from "../../event/byte_writer.ts";
import { sha256Hex } from "../../event/hash.ts";
import * as layout from "../../event/line_layout.ts";
import { HASH_CHARS, type Piece, UUID_CHARS } from "../../event/line_layout.ts";
import { viewOf } from "./line_bytes.ts";
import type { StoredEvent } from "./stored_event.ts";

const BATCH_OPEN = Buffer.from('{"events":[');
const SOURCE_OF_BATCH = Buffer.from('],"source":"');
const BATCH_CLOSE = Buffer.from('","v":1}');
const OPEN = Buffer.from("{");
const CLOSE = Buffer.from("}");
const COMMA = Buffer.from(",");

/** Initial size of the buffer for hash input. */
const BUFFER_BYTES = 64 * 1024;

/** Computes the digests of batches, one after another. */
export class BatchDigester {
  readonly #text = new ByteWriter(BUFFER_BYTES);
  /** The batch's source, escaped. */
  #source: Uint8Array = Buffer.alloc(0);

  add(event: StoredEvent): void {
    const text = this.#text;
    const isFirst = text.size === 0;
    if (isFirst) {
      this.#source = Buffer.from(viewOf(event.bytes, event.sourceStart, event.sourceEnd));
    }
    text.append(isFirst ? BATCH_OPEN : COMMA);
    const { contentHashStart, kindStart, recordKeyStart, streamStart } = event;
    text.append(OPEN);
    // This piece begins with the comma, not with a closing quote, so `putMember()` omits the comma.
    putMember(text, event, layout.CONTENT_HASH, contentHashStart, contentHashStart + HASH_CHARS);
    // In the line, too, `occurred_at` directly follows `kind`, so one copy covers both.
    const kindEnd = event.occurredAtStart < 0 ? event.kindEnd : event.occurredAtEnd;
    putMember(text, event, layout.KIND, kindStart, kindEnd);
    putMember(text, event, layout.RECORD_KEY, recordKeyStart, event.recordKeyEnd);
    putMember(text, event, layout.STREAM, streamStart, event.streamEnd);
    text.append(CLOSE);
  }

  /** Returns the digest, 64 lowercase hex digits. The next event starts a new batch. */
  finish(): string {
    for (const piece of [SOURCE_OF_BATCH, this.#source, BATCH_CLOSE]) this.#text.append(piece);
    return hashOf(this.#text);
  }
}

const envelopeText = new ByteWriter(BUFFER_BYTES);

/** Returns the SHA-256 of the event's canonical envelope, 64 lowercase hex digits. */
export function hashEnvelope(event: StoredEvent): string {
  const text = envelopeText;
  const { batchIdStart, contentHashStart, eventIdStart, observedAtStart } = event;
  text.append(OPEN);
  // The first member has no comma.
  const batchIdAt = batchIdStart - layout.BATCH_ID.sizeBytes + 2;
  text.append(viewOf(event.bytes, batchIdAt, event.batchIdEnd + 1));
  text.append(COMMA);
  putMember(text, event, layout.CONTENT_HASH, contentHashStart, contentHashStart + HASH_CHARS);
  text.append(COMMA);
  putMember(text, event, layout.OPENING, eventIdStart, eventIdStart + UUID_CHARS);
  putMember(text, event, layout.KIND, event.kindStart, event.kindEnd);
  const observedAtEnd = observedAtStart + layout.OBSERVED_AT_CHARS;
  putMember(text, event, layout.OBSERVED_AT, observedAtStart, observedAtEnd);
  if (event.occurredAtStart >= 0) {
    putMember(text, event, layout.OCCURRED_AT, event.occurredAtStart, event.occurredAtEnd);
  }
  putMember(text, event, layout.RECORD_KEY, event.recordKeyStart, event.recordKeyEnd);
  // In the line, too, `stream` directly follows `source`, so one copy covers both.
  putMember(text, event, layout.SOURCE, event.sourceStart, event.streamEnd);
  text.append(CLOSE);
  return hashOf(text);
}

/** Returns the SHA-256 of the text as 64 lowercase hex digits, and clears the text. */
function hashOf(text: ByteWriter): string {
  const digest = sha256Hex(viewOf(text.bytes, 0, text.size));
  text.size = 0;
  return digest;
}

/** Appends a member from a line: a comma, `name` and the value in [start, end), with quotes. */
function putMember(
  text: ByteWriter,
  event: StoredEvent,
  name: Piece,
  start: number,
  end: number,
): void {
  // The name piece begins with the closing quote of the previous value.
  text.append(viewOf(event.bytes, start - name.sizeBytes + 1, end + 1));
}
