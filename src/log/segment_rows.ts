/**
 * Collects the rows of one row group as the columns that the Parquet writer takes. Values that repeat
 * are one object for all their rows, which is what the writer's dictionaries look for first.
 */
import { Buffer } from "node:buffer";
import type { ColumnSource } from "hyparquet-writer/src/types.js";
import { formatTimestamp } from "../event/timestamp.ts";
import { ROW_GROUP_EVENTS_MAX } from "../limits.ts";
import type { BatchEntry } from "./commit_frame.ts";
import {
  HASH_BYTES,
  sameBytes,
  takeHex,
  takeUuid,
  unescapedText,
  UUID_BYTES,
} from "./line_bytes.ts";
import { CorruptLogError } from "./log_error.ts";
import {
  BOUNDED_COLUMNS,
  COLUMN_NAMES,
  type ColumnName,
  type FilteredColumn,
} from "./segment_schema.ts";
import { OBSERVED_AT_CHARS, type StoredEvent } from "./stored_event.ts";

/** What all rows of a batch share. */
export interface BatchValues {
  source: Uint8Array;
  batchId: Uint8Array;
  batchDigest: Uint8Array;
}

export function batchValues(entry: BatchEntry): BatchValues {
  return {
    source: Buffer.from(entry.source),
    batchId: Buffer.from(entry.batch_id),
    batchDigest: Buffer.from(entry.batch_digest, "hex"),
  };
}

/** A name and its bytes, the same object wherever it appears in the row group. */
interface Name {
  text: string;
  bytes: Uint8Array;
}

type Columns = Record<ColumnName, (Uint8Array | bigint | undefined)[]>;

export class RowGroupRows {
  #columns = emptyColumns();
  /** Ids of the batches that have rows here. */
  #batches: Uint8Array[] = [];
  #lastBatch: BatchValues | null = null;
  /** Ids and times outlive the row group: its bounds refer to them until the footer is written. */
  #ids = new Uint8Array(ROW_GROUP_EVENTS_MAX * UUID_BYTES);
  readonly #contentHashes = new Uint8Array(ROW_GROUP_EVENTS_MAX * HASH_BYTES);
  readonly #eventHashes = new Uint8Array(ROW_GROUP_EVENTS_MAX * HASH_BYTES);
  readonly #streams = new Names();
  readonly #kinds = new Names();
  #observedAt: { text: Buffer; timeMs: bigint } | null = null;

  get rows(): number {
    return this.#columns.event_id.length;
  }

  /**
   * Takes in the next event. Its line must not change before the row group is written.
   * @returns the name of its stream.
   * @throws {CorruptLogError} when a value could not be given back as it is spelled.
   */
  add(event: StoredEvent, batch: BatchValues): string {
    const columns = this.#columns;
    const { bytes } = event;
    const row = this.rows;
    if (batch !== this.#lastBatch) this.#batches.push(batch.batchId);
    this.#lastBatch = batch;
    const stream = this.#streams.of(bytes, event.streamStart, event.streamEnd);
    columns.event_id.push(this.#id(event, row));
    columns.source.push(batch.source);
    columns.stream.push(stream.bytes);
    columns.record_key.push(text(event, "record_key", event.recordKeyStart, event.recordKeyEnd));
    columns.kind.push(this.#kinds.of(bytes, event.kindStart, event.kindEnd).bytes);
    columns.occurred_at.push(occurredAt(event));
    columns.observed_at.push(this.#observedAtMs(event));
    columns.payload.push(bytes.subarray(event.payloadStart, event.payloadEnd));
    columns.content_hash.push(hash(event, event.contentHashStart, this.#contentHashes, row));
    columns.batch_id.push(batch.batchId);
    columns.batch_digest.push(batch.batchDigest);
    columns.event_hash.push(hash(event, event.eventHashStart, this.#eventHashes, row));
    return stream.text;
  }

  /** The columns as the Parquet writer takes them. */
  columnData(): ColumnSource[] {
    const repeats = 2 * this.#batches.length <= this.rows;
    return COLUMN_NAMES.map((name) => ({
      name,
      data: this.#columns[name],
      encoding: isDictionary(name, repeats) ? "RLE_DICTIONARY" as const : "PLAIN" as const,
      statistics: BOUNDED_COLUMNS.has(name),
      columnIndex: BOUNDED_COLUMNS.has(name),
    }));
  }

  /** The values of a column that has a Bloom filter, most of them once. */
  filteredValues(name: FilteredColumn): Iterable<Uint8Array> {
    switch (name) {
      case "stream":
        return this.#streams.values();
      case "record_key":
        return this.#columns.record_key as Uint8Array[];
      case "batch_id":
        return this.#batches;
    }
  }

  /** Starts the next row group. */
  clear(): void {
    this.#columns = emptyColumns();
    this.#ids = new Uint8Array(ROW_GROUP_EVENTS_MAX * UUID_BYTES);
    this.#batches = [];
    this.#lastBatch = null;
    this.#streams.clear();
    this.#kinds.clear();
  }

  #id(event: StoredEvent, row: number): Uint8Array {
    const start = row * UUID_BYTES;
    if (!takeUuid(event.bytes, event.eventIdStart, this.#ids, start)) {
      throw corruptValue(event, "event_id");
    }
    return this.#ids.subarray(start, start + UUID_BYTES);
  }

  #observedAtMs(event: StoredEvent): bigint {
    const start = event.observedAtStart;
    const end = start + OBSERVED_AT_CHARS;
    const last = this.#observedAt;
    if (last !== null && sameBytes(event.bytes, start, end, last.text, 0, OBSERVED_AT_CHARS)) {
      return last.timeMs;
    }
    const spelled = event.bytes.toString("latin1", start, end);
    const timeMs = Date.parse(spelled);
    if (Number.isNaN(timeMs) || formatTimestamp(timeMs) !== spelled) {
      throw corruptValue(event, "observed_at");
    }
    this.#observedAt = { text: Buffer.from(spelled), timeMs: BigInt(timeMs) };
    return this.#observedAt.timeMs;
  }
}

/** Gives equal names one object, a copy that does not hold on to the lines. */
class Names {
  readonly #names = new Map<string, Name>();
  #last: Name | null = null;

  of(bytes: Buffer, start: number, end: number): Name {
    const last = this.#last;
    if (last !== null && sameBytes(bytes, start, end, last.bytes, 0, last.bytes.length)) {
      return last;
    }
    const spelled = bytes.toString("utf8", start, end);
    let name = this.#names.get(spelled);
    if (name === undefined) {
      const text = unescapedText(bytes, start, end);
      if (text === null) throw new CorruptLogError(`an event has the malformed name "${spelled}"`);
      name = { text: spelled, bytes: Uint8Array.from(text) };
      this.#names.set(spelled, name);
    }
    this.#last = name;
    return name;
  }

  *values(): Iterable<Uint8Array> {
    for (const name of this.#names.values()) yield name.bytes;
  }

  clear(): void {
    this.#names.clear();
    this.#last = null;
  }
}

function emptyColumns(): Columns {
  return Object.fromEntries(COLUMN_NAMES.map((name) => [name, []])) as unknown as Columns;
}

/** Whether a column's values are written once each; those of batches only if they repeat. */
function isDictionary(name: ColumnName, batchesRepeat: boolean): boolean {
  switch (name) {
    case "source":
    case "stream":
    case "kind":
    case "observed_at":
      return true;
    case "batch_id":
    case "batch_digest":
      return batchesRepeat;
    default:
      return false;
  }
}

function text(event: StoredEvent, name: ColumnName, start: number, end: number): Uint8Array {
  const value = unescapedText(event.bytes, start, end);
  if (value === null) throw corruptValue(event, name);
  return value;
}

/** A copy, because the column has bounds. */
function occurredAt(event: StoredEvent): Uint8Array | undefined {
  if (event.occurredAtStart < 0) return undefined;
  return Uint8Array.from(text(event, "occurred_at", event.occurredAtStart, event.occurredAtEnd));
}

function hash(event: StoredEvent, start: number, into: Uint8Array, row: number): Uint8Array {
  const at = row * HASH_BYTES;
  if (!takeHex(event.bytes, start, HASH_BYTES, into, at)) throw corruptValue(event, "a hash");
  return into.subarray(at, at + HASH_BYTES);
}

function corruptValue(event: StoredEvent, what: string): CorruptLogError {
  return new CorruptLogError(`event ${event.eventId} has a malformed value: ${what}`);
}
