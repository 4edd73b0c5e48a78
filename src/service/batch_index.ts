/**
 * The committed batches of one file by their identity `(source, batch_id)`. Filled from commit
 * headers at a start, and after each commit: there is no second place on disk that could disagree.
 *
 * In flat memory: a tail of single events has a hundred thousand batches, which as objects took
 * three times as much, and the work of every collection of the heap.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import type { BatchEntry } from "../log/commit_frame.ts";
import { KeyTable } from "../log/key_table.ts";
import {
  HASH_BYTES,
  takeHex,
  takeUuid,
  UUID_BYTES,
  UUID_CHARS,
  uuidText,
} from "../log/line_bytes.ts";

/** A record: a digest, two ids, and the number of events as a double. */
const FIRST_ID_OFFSET = HASH_BYTES;
const LAST_ID_OFFSET = FIRST_ID_OFFSET + UUID_BYTES;
const EVENTS_OFFSET = LAST_ID_OFFSET + UUID_BYTES;
const RECORD_BYTES = EVENTS_OFFSET + 8;
/** Memory is taken for so many at a time. */
const CHUNK_RECORDS = 4096;

/** A UTF-16 code unit takes one to three bytes of UTF-8. */
const UTF8_BYTES_MAX = 3;
const ASCII_END = 0x80;
const SPACE = 0x20;
const encoder = new TextEncoder();
/** What a key is spelled in. */
let spelled: Uint8Array = new Uint8Array(1024);
/** A digest and two ids as text. */
const entryText = new Uint8Array(2 * HASH_BYTES + 2 * UUID_CHARS);

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

  add(entry: BatchEntry): void {
    const number = this.#keys.size;
    this.#put(number, entry);
    const keyBytes = spellKey(entry.source, entry.batch_id);
    const added = this.#keys.add(spelled, keyBytes);
    assert(added === number, "a batch identity is committed once");
  }

  #put(number: number, { batch_digest, first_event_id, last_event_id, events }: BatchEntry): void {
    if (number === this.#records.length * CHUNK_RECORDS) {
      this.#records.push(Buffer.allocUnsafeSlow(CHUNK_RECORDS * RECORD_BYTES));
    }
    const { chunk, at } = this.#placeOf(number);
    const firstIdStart = putAscii(entryText, 0, batch_digest);
    const lastIdStart = putAscii(entryText, firstIdStart, first_event_id);
    const end = putAscii(entryText, lastIdStart, last_event_id);
    const isCanonical = end === entryText.length &&
      takeHex(entryText, 0, HASH_BYTES, chunk, at) &&
      takeUuid(entryText, firstIdStart, chunk, at + FIRST_ID_OFFSET) &&
      takeUuid(entryText, lastIdStart, chunk, at + LAST_ID_OFFSET);
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
  const sizeBytesMax = source.length + 1 + UTF8_BYTES_MAX * batchId.length;
  if (sizeBytesMax > spelled.length) spelled = new Uint8Array(sizeBytesMax);
  const sourceEnd = putAscii(spelled, 0, source);
  spelled[sourceEnd] = SPACE;
  const end = putAscii(spelled, sourceEnd + 1, batchId);
  if (end >= 0) return end;
  assert(batchId.isWellFormed(), "a batch id has no half of a surrogate pair");
  const { written } = encoder.encodeInto(batchId, spelled.subarray(sourceEnd + 1));
  return sourceEnd + 1 + written;
}

/** Puts a short text; returns where it ends, -1 if it is not ASCII. The runtime takes longer. */
function putAscii(into: Uint8Array, at: number, text: string): number {
  let seen = 0;
  for (let place = 0; place < text.length; place++) {
    const code = text.charCodeAt(place);
    seen |= code;
    into[at + place] = code;
  }
  return seen < ASCII_END ? at + text.length : -1;
}
