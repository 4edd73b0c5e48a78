/**
 * The committed batches of one file by their identity `(source, batch_id)`. Filled from commit
 * headers at a start, and after each commit: there is no second place on disk that could disagree.
 *
 * In flat memory: a tail of single events has a hundred thousand batches, which as objects took
 * three times as much, and the work of every collection of the heap.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import type { BatchEntry } from "../log/wal/commit_frame.ts";
import { KeyTable } from "../log/segment/key_table.ts";
import {
  HASH_BYTES,
  takeHex,
  takeUuid,
  UUID_BYTES,
  UUID_CHARS,
  uuidText,
} from "../log/line/line_bytes.ts";

/** A record: a digest, two ids, and the number of events as a double. */
const FIRST_ID_OFFSET = HASH_BYTES;
const LAST_ID_OFFSET = FIRST_ID_OFFSET + UUID_BYTES;
const EVENTS_OFFSET = LAST_ID_OFFSET + UUID_BYTES;
const RECORD_BYTES = EVENTS_OFFSET + 8;
/** Memory is taken for so many at a time. */
const CHUNK_RECORDS = 4096;

/** A UTF-16 code unit takes one to three bytes of UTF-8. */
const UTF8_BYTES_MAX = 3;
const encoder = new TextEncoder();
/** What a key is spelled in. */
let spelled: Uint8Array = new Uint8Array(1024);
/** A digest and two ids as text. */
const FIRST_ID_START = 2 * HASH_BYTES;
const LAST_ID_START = FIRST_ID_START + UUID_CHARS;
const entryText = new Uint8Array(LAST_ID_START + UUID_CHARS);

export class BatchIndex {
  readonly #keys = new KeyTable();
  /** By the number of the key. */
  readonly #records: Buffer[] = [];

  /** The committed batch of that identity; undefined when there is none. */
  get(source: string, batchId: string): BatchEntry | undefined {
    const keyBytes = spellKey(source, batchId);
    const number = this.#keys.find(spelled, keyBytes);
    if (number === null) return undefined;
    const { chunk, at } = this.#placeOf(number);
    return {
      batch_digest: chunk.toString("hex", at, at + HASH_BYTES),
      batch_id: batchId,
      events: chunk.readDoubleLE(at + EVENTS_OFFSET),
      first_event_id: uuidText(chunk, at + FIRST_ID_OFFSET),
      last_event_id: uuidText(chunk, at + LAST_ID_OFFSET),
      source,
    };
  }

  /** @returns the number of the batch: they are numbered from 0 in the order in which they come. */
  add(entry: BatchEntry): number {
    const number = this.#keys.size;
    this.#put(number, entry);
    const keyBytes = spellKey(entry.source, entry.batch_id);
    const added = this.#keys.add(spelled, keyBytes);
    assert(added === number, "a batch identity is committed once");
    return number;
  }

  /** Last event of the batch of that number. */
  lastEventId(number: number): string {
    const { chunk, at } = this.#placeOf(number);
    return uuidText(chunk, at + LAST_ID_OFFSET);
  }

  #put(number: number, { batch_digest, first_event_id, last_event_id, events }: BatchEntry): void {
    if (number === this.#records.length * CHUNK_RECORDS) {
      this.#records.push(Buffer.allocUnsafeSlow(CHUNK_RECORDS * RECORD_BYTES));
    }
    const { chunk, at } = this.#placeOf(number);
    const text = batch_digest + first_event_id + last_event_id;
    const { read, written } = encoder.encodeInto(text, entryText);
    const isCanonical = read === text.length && written === entryText.length &&
      takeHex(entryText, 0, HASH_BYTES, chunk, at) &&
      takeUuid(entryText, FIRST_ID_START, chunk, at + FIRST_ID_OFFSET) &&
      takeUuid(entryText, LAST_ID_START, chunk, at + LAST_ID_OFFSET);
    assert(isCanonical, "digest and ids of a batch are canonical");
    chunk.writeDoubleLE(events, at + EVENTS_OFFSET);
  }

  #placeOf(number: number): { chunk: Buffer; at: number } {
    const chunk = this.#records[Math.floor(number / CHUNK_RECORDS)]!;
    return { chunk, at: number % CHUNK_RECORDS * RECORD_BYTES };
  }
}

/**
 * Puts the key of an identity into `spelled`; returns its size. No source holds a space, so that
 * keys are unambiguous.
 */
function spellKey(source: string, batchId: string): number {
  const key = `${source} ${batchId}`;
  assert(key.isWellFormed(), "a batch id has no half of a surrogate pair");
  const sizeBytesMax = UTF8_BYTES_MAX * key.length;
  if (sizeBytesMax > spelled.length) spelled = new Uint8Array(sizeBytesMax);
  return encoder.encodeInto(key, spelled).written;
}
