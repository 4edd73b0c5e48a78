/**
 * Collects the rows in one row group, each column in its final encoding: plain values, or
 * dictionary indices for repetitive columns. Values are copied from the lines once and must be in
 * canonical form, since readers reproduce that form.
 */
import { Buffer } from "node:buffer";
import { formatTimestamp } from "../../event/timestamp.ts";
import { ROW_GROUP_EVENTS_MAX } from "../../limits.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import { Dictionary } from "../parquet/dictionary.ts";
import {
  HASH_BYTES,
  needsEscape,
  takeHex,
  takeUuid,
  unescapedText,
  UUID_BYTES,
} from "../line/line_bytes.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { PlainValues } from "../parquet/plain_values.ts";
import { OBSERVED_AT_CHARS } from "../line/line_layout.ts";
import { COLUMN_NAMES } from "./segment_schema.ts";
import type { StoredEvent } from "../line/stored_event.ts";

export class RowGroupRows {
  rows = 0;
  readonly event_id = new PlainValues();
  readonly source = new Dictionary();
  readonly stream = new Dictionary();
  readonly record_key = new PlainValues();
  readonly kind = new Dictionary();
  /** Contains only the values that are present. */
  readonly occurred_at = new PlainValues();
  readonly observed_at = new Dictionary();
  readonly payload = new PlainValues();
  readonly content_hash = new PlainValues();
  readonly batch_id = new Dictionary();
  readonly batch_digest = new Dictionary();
  readonly event_hash = new PlainValues();
  readonly #levels = new Uint8Array(ROW_GROUP_EVENTS_MAX);

  /** For each row, 1 if it has an `occurred_at`, otherwise 0. */
  get occurredAtLevels(): Uint8Array {
    return this.#levels.subarray(0, this.rows);
  }

  /**
   * Adds the next event; returns the name of its stream.
   * @throws {CorruptLogError} if a value is not in canonical form.
   */
  add(event: StoredEvent, batch: BatchEntry): string {
    const { bytes, streamStart, streamEnd, kindStart, kindEnd, observedAtStart } = event;
    this.source.add(batch.source, Buffer.from);
    this.batch_id.add(batch.batch_id, Buffer.from);
    this.batch_digest.add(batch.batch_digest, (digest) => Buffer.from(digest, "hex"));
    this.#addFixed(event);
    const stream = bytes.toString("latin1", streamStart, streamEnd);
    this.stream.add(stream, decodeText);
    addText(this.record_key, event, event.recordKeyStart, event.recordKeyEnd);
    this.kind.add(bytes.toString("latin1", kindStart, kindEnd), decodeText);
    const observedAtEnd = observedAtStart + OBSERVED_AT_CHARS;
    this.observed_at.add(bytes.toString("latin1", observedAtStart, observedAtEnd), decodeTime);
    this.payload.add(bytes, event.payloadStart, event.payloadEnd);
    const isDated = event.occurredAtStart >= 0;
    if (isDated) addText(this.occurred_at, event, event.occurredAtStart, event.occurredAtEnd);
    this.#levels[this.rows] = isDated ? 1 : 0;
    this.rows += 1;
    return stream;
  }

  clear(): void {
    this.rows = 0;
    for (const name of COLUMN_NAMES) this[name].clear();
  }

  #addFixed({ bytes, eventIdStart, contentHashStart, eventHashStart }: StoredEvent): void {
    const { event_id, content_hash, event_hash } = this;
    const idPlace = event_id.take(UUID_BYTES);
    const contentPlace = content_hash.take(HASH_BYTES);
    const eventPlace = event_hash.take(HASH_BYTES);
    const isValid = takeUuid(bytes, eventIdStart, event_id.bytes, idPlace) &&
      takeHex(bytes, contentHashStart, HASH_BYTES, content_hash.bytes, contentPlace) &&
      takeHex(bytes, eventHashStart, HASH_BYTES, event_hash.bytes, eventPlace);
    if (!isValid) throw new CorruptLogError("an event has a malformed id or hash");
  }
}

function addText(column: PlainValues, { bytes }: StoredEvent, start: number, end: number): void {
  // Most strings have no escapes, and copying them is cheaper than creating a view.
  if (!needsEscape(bytes, start, end)) {
    column.add(bytes, start, end);
    return;
  }
  const text = unescapedText(bytes, start, end);
  if (text === null) throw malformed(bytes.toString("utf8", start, end));
  column.add(text);
}

/** Unescapes a JSON string. @param spelled the string's UTF-8 bytes, decoded as Latin-1. */
function decodeText(spelled: string): Uint8Array {
  const bytes = Buffer.from(spelled, "latin1");
  const text = unescapedText(bytes, 0, bytes.length);
  if (text === null) throw malformed(bytes.toString());
  return text;
}

/** Encodes an `observed_at` as INT64 Unix milliseconds. */
function decodeTime(spelled: string): Uint8Array {
  const timeMs = Date.parse(spelled);
  if (Number.isNaN(timeMs) || formatTimestamp(timeMs) !== spelled) throw malformed(spelled);
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(timeMs));
  return bytes;
}

function malformed(spelled: string): CorruptLogError {
  return new CorruptLogError(`an event has a malformed value: "${spelled}"`);
}
