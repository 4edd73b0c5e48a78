/**
 * Collects the rows in one row group by column. Values are copied from the lines once and must be
 * in canonical form, since readers reproduce that form.
 */
import { Buffer } from "node:buffer";
import type { DecodedArray } from "hyparquet";
import { formatTimestamp } from "../../event/timestamp.ts";
import type { BatchEntry } from "../wal/commit_frame.ts";
import { HASH_BYTES, takeHex, takeUuid, unescapedText, UUID_BYTES } from "../line/line_bytes.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { OBSERVED_AT_CHARS } from "../line/line_layout.ts";
import type { StoredEvent } from "../line/stored_event.ts";
import type { ColumnName } from "./segment_schema.ts";

/** Values that repeat. Rows with equal values share one object, by which the library finds them. */
class RepeatedColumn<Value> {
  readonly #byText = new Map<string, Value>();
  readonly rows: Value[] = [];

  /** Adds the next row. @param decode called once per distinct `text`; returns its value. */
  add(text: string, decode: (text: string) => Value): void {
    let value = this.#byText.get(text);
    if (value === undefined) {
      value = decode(text);
      this.#byText.set(text, value);
    }
    this.rows.push(value);
  }

  /** Whether a dictionary is smaller than the plain values. */
  get repeats(): boolean {
    return 2 * this.#byText.size <= this.rows.length;
  }
}

export class RowGroupRows {
  readonly event_id: Buffer[] = [];
  readonly source = new RepeatedColumn<Buffer>();
  readonly stream = new RepeatedColumn<Buffer>();
  readonly record_key: Buffer[] = [];
  readonly kind = new RepeatedColumn<Buffer>();
  readonly occurred_at: (Buffer | null)[] = [];
  /** Unix milliseconds. */
  readonly observed_at = new RepeatedColumn<bigint>();
  readonly payload: Buffer[] = [];
  readonly content_hash: Buffer[] = [];
  readonly batch_id = new RepeatedColumn<Buffer>();
  readonly batch_digest = new RepeatedColumn<Buffer>();
  readonly event_hash: Buffer[] = [];

  get rows(): number {
    return this.event_id.length;
  }

  /** Adds the next event. @throws {CorruptLogError} if a value is not in canonical form. */
  add(event: StoredEvent, batch: BatchEntry): void {
    const { bytes, streamStart, streamEnd, kindStart, kindEnd, observedAtStart } = event;
    const { recordKeyStart, recordKeyEnd, occurredAtStart, occurredAtEnd } = event;
    this.source.add(batch.source, Buffer.from);
    this.batch_id.add(batch.batch_id, Buffer.from);
    this.batch_digest.add(batch.batch_digest, (digest) => Buffer.from(digest, "hex"));
    this.#addFixed(event);
    this.stream.add(bytes.toString("latin1", streamStart, streamEnd), decodeText);
    this.record_key.push(textIn(bytes, recordKeyStart, recordKeyEnd));
    this.kind.add(bytes.toString("latin1", kindStart, kindEnd), decodeText);
    const observedAtEnd = observedAtStart + OBSERVED_AT_CHARS;
    this.observed_at.add(bytes.toString("latin1", observedAtStart, observedAtEnd), decodeTime);
    this.payload.push(Buffer.from(bytes.subarray(event.payloadStart, event.payloadEnd)));
    const isDated = occurredAtStart >= 0;
    this.occurred_at.push(isDated ? textIn(bytes, occurredAtStart, occurredAtEnd) : null);
  }

  /** Returns the values in a column. */
  valuesOf(name: ColumnName): DecodedArray {
    const column = this[name];
    return column instanceof RepeatedColumn ? column.rows : column;
  }

  hasDictionary(name: ColumnName): boolean {
    const column = this[name];
    return column instanceof RepeatedColumn && column.repeats;
  }

  #addFixed({ bytes, eventIdStart, contentHashStart, eventHashStart }: StoredEvent): void {
    const id = Buffer.allocUnsafe(UUID_BYTES);
    const content = Buffer.allocUnsafe(HASH_BYTES);
    const hash = Buffer.allocUnsafe(HASH_BYTES);
    const isValid = takeUuid(bytes, eventIdStart, id, 0) &&
      takeHex(bytes, contentHashStart, HASH_BYTES, content, 0) &&
      takeHex(bytes, eventHashStart, HASH_BYTES, hash, 0);
    if (!isValid) throw new CorruptLogError("an event has a malformed id or hash");
    this.event_id.push(id);
    this.content_hash.push(content);
    this.event_hash.push(hash);
  }
}

/** Returns an unescaped copy of a JSON string. */
function textIn(bytes: Buffer, start: number, end: number): Buffer {
  const text = unescapedText(bytes, start, end);
  if (text === null) throw malformed(bytes.toString("utf8", start, end));
  return Buffer.from(text);
}

/** Unescapes a JSON string. @param spelled the string's UTF-8 bytes, decoded as Latin-1. */
function decodeText(spelled: string): Buffer {
  return textIn(Buffer.from(spelled, "latin1"), 0, spelled.length);
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
