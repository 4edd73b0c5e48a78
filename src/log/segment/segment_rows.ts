/**
 * Collects the rows in one row group by column. Values are copied from the lines once and must be
 * in canonical form, since readers reproduce that form.
 */
import { Buffer } from "node:buffer";
import type { DecodedArray } from "hyparquet";
import { formatTimestamp } from "../../event/timestamp.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import {
  HASH_BYTES,
  needsEscape,
  takeHex,
  takeUuid,
  unescapedText,
  UUID_BYTES,
} from "../line/line_bytes.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { OBSERVED_AT_CHARS } from "../line/line_layout.ts";
import { FixedColumn, RepeatedColumn, TextColumn } from "./row_columns.ts";
import type { StoredEvent } from "../line/stored_event.ts";
import { COLUMN_NAMES, type ColumnName } from "./segment_schema.ts";

export class RowGroupRows {
  rows = 0;
  readonly event_id = new FixedColumn(UUID_BYTES);
  readonly source = new RepeatedColumn<Uint8Array>();
  readonly stream = new RepeatedColumn<Uint8Array>();
  readonly record_key = new TextColumn();
  readonly kind = new RepeatedColumn<Uint8Array>();
  readonly occurred_at = new TextColumn();
  /** Unix milliseconds. */
  readonly observed_at = new RepeatedColumn<bigint>();
  readonly payload = new TextColumn();
  readonly content_hash = new FixedColumn(HASH_BYTES);
  readonly batch_id = new RepeatedColumn<Uint8Array>();
  readonly batch_digest = new RepeatedColumn<Uint8Array>();
  readonly event_hash = new FixedColumn(HASH_BYTES);

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
    else this.occurred_at.addAbsent();
    this.rows += 1;
    return stream;
  }

  /** Returns the values in a column. */
  valuesOf(name: ColumnName): DecodedArray {
    const column = this[name];
    return column instanceof FixedColumn ? column.values(this.rows) : column.values();
  }

  /** Returns the texts in a column, repeated ones once. */
  *textsOf(name: "record_key" | "kind"): Iterable<string> {
    const column = this[name];
    const values = column instanceof TextColumn ? column.values() : column.distinct();
    for (const value of values) yield utf8(value!);
  }

  clear(): void {
    this.rows = 0;
    for (const name of COLUMN_NAMES) {
      const column = this[name];
      if (!(column instanceof FixedColumn)) column.clear();
    }
  }

  #addFixed({ bytes, eventIdStart, contentHashStart, eventHashStart }: StoredEvent): void {
    const { event_id: id, content_hash: content, event_hash: hash, rows } = this;
    const isValid = takeUuid(bytes, eventIdStart, id.bytes, id.startOf(rows)) &&
      takeHex(bytes, contentHashStart, HASH_BYTES, content.bytes, content.startOf(rows)) &&
      takeHex(bytes, eventHashStart, HASH_BYTES, hash.bytes, hash.startOf(rows));
    if (!isValid) throw new CorruptLogError("an event has a malformed id or hash");
  }
}

function utf8({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length).toString();
}

function addText(column: TextColumn, { bytes }: StoredEvent, start: number, end: number): void {
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

/** Returns an `observed_at` as Unix milliseconds. */
function decodeTime(spelled: string): bigint {
  const timeMs = Date.parse(spelled);
  if (Number.isNaN(timeMs) || formatTimestamp(timeMs) !== spelled) throw malformed(spelled);
  return BigInt(timeMs);
}

function malformed(spelled: string): CorruptLogError {
  return new CorruptLogError(`an event has a malformed value: "${spelled}"`);
}
