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
  takeHex,
  takeUuid,
  unescapedText,
  UUID_BYTES,
  viewOf,
} from "../line/line_bytes.ts";
import { CorruptLogError } from "../storage/errors.ts";
import { OBSERVED_AT_CHARS } from "../../event/line_layout.ts";
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

const MEMORY_CHUNK_BYTES = 64 * 1024;

/** Memory for the values in a row group. Its views cost less than a Buffer for each value. */
class ValueMemory {
  #chunk = new Uint8Array(0);
  #used = 0;

  take(sizeBytes: number): Uint8Array {
    if (this.#used + sizeBytes > this.#chunk.length) {
      this.#chunk = new Uint8Array(Math.max(sizeBytes, MEMORY_CHUNK_BYTES));
      this.#used = 0;
    }
    this.#used += sizeBytes;
    return viewOf(this.#chunk, this.#used - sizeBytes, this.#used);
  }

  copy(bytes: Uint8Array): Uint8Array {
    const taken = this.take(bytes.length);
    taken.set(bytes);
    return taken;
  }
}

export class RowGroupRows {
  readonly #memory = new ValueMemory();
  readonly event_id: Uint8Array[] = [];
  readonly source = new RepeatedColumn<Uint8Array>();
  readonly stream = new RepeatedColumn<Uint8Array>();
  readonly record_key: Uint8Array[] = [];
  readonly kind = new RepeatedColumn<Uint8Array>();
  readonly occurred_at: (Uint8Array | null)[] = [];
  /** Unix milliseconds. */
  readonly observed_at = new RepeatedColumn<bigint>();
  readonly payload: Uint8Array[] = [];
  readonly content_hash: Uint8Array[] = [];
  readonly batch_id = new RepeatedColumn<Uint8Array>();
  readonly batch_digest = new RepeatedColumn<Uint8Array>();
  readonly event_hash: Uint8Array[] = [];

  get rows(): number {
    return this.event_id.length;
  }

  /**
   * Adds the next event.
   * @param isAlone whether no event follows in this row group, so that it is written before the
   *   event's bytes are freed, and the payload need not be copied.
   * @throws {CorruptLogError} if a value is not in canonical form.
   */
  add(event: StoredEvent, batch: BatchEntry, isAlone = false): void {
    const { bytes, kindStart, kindEnd, observedAtStart } = event;
    const { recordKeyStart, recordKeyEnd, occurredAtStart, occurredAtEnd } = event;
    this.source.add(batch.source, Buffer.from);
    this.batch_id.add(batch.batch_id, Buffer.from);
    this.batch_digest.add(batch.batch_digest, (digest) => Buffer.from(digest, "hex"));
    this.#addFixed(event);
    this.stream.add(event.stream, decodeText);
    this.record_key.push(this.#memory.copy(textIn(bytes, recordKeyStart, recordKeyEnd)));
    this.kind.add(bytes.toString("latin1", kindStart, kindEnd), decodeText);
    const observedAtEnd = observedAtStart + OBSERVED_AT_CHARS;
    this.observed_at.add(bytes.toString("latin1", observedAtStart, observedAtEnd), decodeTime);
    const payload = viewOf(bytes, event.payloadStart, event.payloadEnd);
    this.payload.push(isAlone ? payload : this.#memory.copy(payload));
    const isDated = occurredAtStart >= 0;
    const occurredAt = isDated && this.#memory.copy(textIn(bytes, occurredAtStart, occurredAtEnd));
    this.occurred_at.push(occurredAt || null);
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
    const id = this.#memory.take(UUID_BYTES);
    const content = this.#memory.take(HASH_BYTES);
    const hash = this.#memory.take(HASH_BYTES);
    const isValid = takeUuid(bytes, eventIdStart, id, 0) &&
      takeHex(bytes, contentHashStart, HASH_BYTES, content, 0) &&
      takeHex(bytes, eventHashStart, HASH_BYTES, hash, 0);
    if (!isValid) throw new CorruptLogError("an event has a malformed id or hash");
    this.event_id.push(id);
    this.content_hash.push(content);
    this.event_hash.push(hash);
  }
}

/** Unescapes a JSON string. The result is a view of `bytes` if nothing is escaped. */
function textIn(bytes: Buffer, start: number, end: number): Uint8Array {
  const text = unescapedText(bytes, start, end);
  if (text === null) throw malformed(bytes.toString("utf8", start, end));
  return text;
}

/** Unescapes a JSON string. @param spelled the string's UTF-8 bytes, decoded as Latin-1. */
function decodeText(spelled: string): Uint8Array {
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
