/**
 * Lays the events of a batch out as lines and envelopes, and hashes what the batch digest covers.
 * All of it happens in one memory: first the pieces of the events as they come, each text as its
 * canonical JSON string, then the texts that are put together of them.
 *
 * One batch at a time: `begin()`, the events, `finish()`. What a batch that could not be finished
 * has left, the next `begin()` drops.
 */
import { Buffer } from "node:buffer";
import { assert } from "../assert.ts";
import { freeOwnMemory } from "../free_memory.ts";
import { BATCH_EVENTS_MAX, POOLED_BYTES_MIN } from "../limits.ts";
import { BlockText } from "./block_text.ts";
import { BufferPool } from "./buffer_pool.ts";
import { ByteWriter } from "./byte_writer.ts";
import {
  type EncodedEvents,
  ENVELOPE_END,
  ENVELOPE_ID,
  ENVELOPE_OBSERVED_AT,
  LINE_CLOSE,
  LINE_END,
  LINE_OBSERVED_AT,
  LINE_START,
  NO_HASH,
  NO_ID,
  NO_TIME,
  PLACES,
  type StreamShare,
} from "./encoded_events.ts";
import { sha256Hex, Sha256Stream } from "./hash.ts";
import { quoteString } from "./json/quote_string.ts";

/**
 * Memory in which a batch is prepared is kept for the next one up to this size, on each thread:
 * that of 10,000 events of usual sizes. To make it anew for each would cost more than all else.
 */
const ENCODER_KEPT_BYTES_MAX = 12 * 1024 * 1024;

/**
 * Numbers of an event in `BatchEncoder.pieces`: start and end of stream, record key, kind and
 * occurred_at (equal when it is absent), and of the payload with what `endPayload()` puts after it.
 */
const PIECES = 10;
export const STREAM = 0;
export const RECORD_KEY = 2;
export const KIND = 4;
export const OCCURRED_AT = 6;
export const PAYLOAD = 8;

/** A part of the memory. */
interface Part {
  start: number;
  end: number;
}

let constantText = "";

/** A part that is there for every batch. */
function constant(text: string): Part {
  const start = constantText.length;
  constantText += text;
  return { start, end: constantText.length };
}

const LINE_ID = constant(`${LINE_START}${NO_ID}","source":`);
const STREAM_NAME = constant(',"stream":');
const RECORD_KEY_NAME = constant(',"record_key":');
const KIND_NAME = constant(',"kind":');
const OCCURRED_AT_NAME = constant(',"occurred_at":');
const SOURCE_NAME = constant(',"source":');
const LINE_TIME = constant(`,"observed_at":"${NO_TIME}","payload":`);
const CONTENT_HASH_NAME = constant(',"content_hash":"');
const LINE_BATCH = constant('","batch_id":');
const LINE_HASH = constant(`,"event_hash":"${NO_HASH}${LINE_CLOSE}`);
const ENVELOPE_START = constant('{"batch_id":');
const ENVELOPE_EVENT = constant(`","event_id":"${NO_ID}","kind":`);
const ENVELOPE_TIME = constant(`,"observed_at":"${NO_TIME}"`);
const DIGEST_START = constant('{"events":[');
const DIGEST_FIRST = constant('{"content_hash":"');
const DIGEST_NEXT = constant(',{"content_hash":"');
const DIGEST_KIND = constant('","kind":');
const DIGEST_VERSION = constant(',"v":1}');
const DIGEST_SOURCE = constant('],"source":');
const CLOSE = constant("}");

const CONSTANTS = Buffer.from(constantText, "latin1");
const HASH_BYTES = NO_HASH.length;
const TIME_PREFIX_BYTES = ',"observed_at":"'.length;
const OCCURRED_AT_NAME_BYTES = sizeOf(OCCURRED_AT_NAME);
const ID_PREFIX_BYTES = '","event_id":"'.length;

/** What the events of a batch have in common. */
interface SharedParts {
  source: Part;
  lineStart: Part;
  lineEnd: Part;
  envelopeStart: Part;
  envelopeSource: Part;
}

/** A source and a batch id twice, each of 256 bytes that are escaped, and what stands around. */
const SHARED_BYTES_MAX = 8 * 1024;
/** Shorter texts share memory. */
const SHARED_TEXT_BYTES_MAX = 4 * 1024;
const MEMORY_BYTES = 64 * 1024;

class BatchEncoder {
  /** Where the lines and envelopes of large batches go. */
  readonly memory: BufferPool = new BufferPool();
  #writer = newMemory();
  #count = 0;
  /** PIECES numbers for each event; one memory for all batches. */
  readonly pieces: Int32Array = new Int32Array(BATCH_EVENTS_MAX * PIECES);

  /** Drops what is there. */
  begin(): void {
    this.#dropLarge();
    this.#writer.size = CONSTANTS.length;
    this.#count = 0;
  }

  /** Keeps no more than the usual: who sends so much may never come again. */
  #dropLarge(): void {
    if (this.#writer.bytes.length <= ENCODER_KEPT_BYTES_MAX) return;
    freeOwnMemory(this.#writer.bytes);
    this.#writer = newMemory();
  }

  /** Takes in one more event, of at most BATCH_EVENTS_MAX; returns the place of its numbers. */
  addEvent(): number {
    const first = this.#count * PIECES;
    this.pieces.fill(0, first, first + PIECES);
    this.#count += 1;
    return first;
  }

  /** The memory, to write pieces to. */
  get writer(): ByteWriter {
    return this.#writer;
  }

  /**
   * Hashes the payload that begins at `start` and was written last; returns the end of its piece.
   */
  endPayload(start: number): number {
    const writer = this.#writer;
    const hash = sha256Hex(writer.bytes.subarray(start, writer.size));
    writer.reserve(CONTENT_HASH_NAME.end - CONTENT_HASH_NAME.start + HASH_BYTES);
    this.#put(CONTENT_HASH_NAME);
    writer.ascii(hash);
    return writer.size;
  }

  /** The batch of the events whose pieces there are. */
  finish(source: string, batchId: string): { events: EncodedEvents; batchDigest: string } {
    const count = this.#count;
    const shared = this.#writeShared(quoteString(source), quoteString(batchId));
    const places = new Int32Array(count * PLACES);
    const lines = this.#writeLines(count, shared, places);
    const envelopes = this.#writeEnvelopes(count, shared, places);
    const batchDigest = this.#digest(count, shared.source);
    const streams = this.#streams(count);
    this.#dropLarge();
    return { events: { count, streams, lines, envelopes, places }, batchDigest };
  }

  #writeShared(source: string, batchId: string): SharedParts {
    const writer = this.#writer;
    writer.reserve(SHARED_BYTES_MAX);
    const written = (start: number): Part => ({ start, end: writer.size });
    let start = writer.size;
    writer.text(source);
    const sourceText = written(start);
    start = writer.size;
    writer.text(batchId);
    const batchIdText = written(start);
    const joined = (...parts: Part[]): Part => {
      const start = writer.size;
      for (const part of parts) this.#put(part);
      return written(start);
    };
    return {
      source: sourceText,
      lineStart: joined(LINE_ID, sourceText, STREAM_NAME),
      lineEnd: joined(LINE_BATCH, batchIdText, LINE_HASH),
      envelopeStart: joined(ENVELOPE_START, batchIdText, CONTENT_HASH_NAME),
      envelopeSource: joined(SOURCE_NAME, sourceText, STREAM_NAME),
    };
  }

  #writeLines(count: number, shared: SharedParts, places: Int32Array): Buffer {
    const { lineStart, lineEnd } = shared;
    const sharedBytes = sizeOf(lineStart, RECORD_KEY_NAME, KIND_NAME, LINE_TIME, lineEnd);
    const lineBytes = (piece: number) =>
      sharedBytes + this.#namesBytes(piece) + this.#pieceBytes(piece + PAYLOAD);
    const lines = this.#bufferFor(count, lineBytes);
    const text = new BlockText(this.#writer, (block, at) => lines.set(block, at));
    for (let index = 0; index < count; index++) {
      const piece = index * PIECES;
      text.reserve(lineBytes(piece));
      this.#put(lineStart);
      this.#piece(piece + STREAM);
      this.#put(RECORD_KEY_NAME);
      this.#piece(piece + RECORD_KEY);
      this.#put(KIND_NAME);
      this.#piece(piece + KIND);
      this.#occurredAt(piece);
      places[index * PLACES + LINE_OBSERVED_AT] = text.sizeBytes + TIME_PREFIX_BYTES;
      this.#put(LINE_TIME);
      this.#piece(piece + PAYLOAD);
      this.#put(lineEnd);
      places[index * PLACES + LINE_END] = text.sizeBytes;
    }
    return ended(text, lines);
  }

  /**
   * RFC 8785 order: batch_id, content_hash, event_id, kind, observed_at, occurred_at, record_key,
   * source, stream.
   */
  #writeEnvelopes(count: number, shared: SharedParts, places: Int32Array): Buffer {
    const { envelopeStart, envelopeSource } = shared;
    const sharedBytes = HASH_BYTES + sizeOf(envelopeStart, ENVELOPE_EVENT, ENVELOPE_TIME) +
      sizeOf(RECORD_KEY_NAME, envelopeSource, CLOSE);
    const envelopeBytes = (piece: number) => sharedBytes + this.#namesBytes(piece);
    const envelopes = this.#bufferFor(count, envelopeBytes);
    const text = new BlockText(this.#writer, (block, at) => envelopes.set(block, at));
    for (let index = 0; index < count; index++) {
      const piece = index * PIECES;
      text.reserve(envelopeBytes(piece));
      this.#put(envelopeStart);
      this.#contentHash(piece);
      places[index * PLACES + ENVELOPE_ID] = text.sizeBytes + ID_PREFIX_BYTES;
      this.#put(ENVELOPE_EVENT);
      this.#piece(piece + KIND);
      places[index * PLACES + ENVELOPE_OBSERVED_AT] = text.sizeBytes + TIME_PREFIX_BYTES;
      this.#put(ENVELOPE_TIME);
      this.#occurredAt(piece);
      this.#put(RECORD_KEY_NAME);
      this.#piece(piece + RECORD_KEY);
      this.#put(envelopeSource);
      this.#piece(piece + STREAM);
      this.#put(CLOSE);
      places[index * PLACES + ENVELOPE_END] = text.sizeBytes;
    }
    return ended(text, envelopes);
  }

  #digest(count: number, source: Part): string {
    const eventBytesMax = HASH_BYTES +
      sizeOf(DIGEST_FIRST, DIGEST_NEXT, DIGEST_KIND, RECORD_KEY_NAME, STREAM_NAME, CLOSE);
    const hash = new Sha256Stream();
    const text = new BlockText(this.#writer, (block) => hash.update(block));
    text.reserve(sizeOf(DIGEST_START));
    this.#put(DIGEST_START);
    for (let index = 0; index < count; index++) {
      const piece = index * PIECES;
      text.reserve(eventBytesMax + this.#namesBytes(piece));
      this.#put(index === 0 ? DIGEST_FIRST : DIGEST_NEXT);
      this.#contentHash(piece);
      this.#put(DIGEST_KIND);
      this.#piece(piece + KIND);
      this.#occurredAt(piece);
      this.#put(RECORD_KEY_NAME);
      this.#piece(piece + RECORD_KEY);
      this.#put(STREAM_NAME);
      this.#piece(piece + STREAM);
      this.#put(CLOSE);
    }
    text.reserve(sizeOf(DIGEST_SOURCE, source, DIGEST_VERSION));
    this.#put(DIGEST_SOURCE);
    this.#put(source);
    this.#put(DIGEST_VERSION);
    return hash.end(text.rest());
  }

  /** What of the pieces of an event is in all texts, with the name of a time that is there. */
  #namesBytes(piece: number): number {
    const timeBytes = this.#pieceBytes(piece + OCCURRED_AT);
    return this.#pieceBytes(piece + STREAM) + this.#pieceBytes(piece + RECORD_KEY) +
      this.#pieceBytes(piece + KIND) + timeBytes + (timeBytes > 0 ? OCCURRED_AT_NAME_BYTES : 0);
  }

  /** @param piece a number of `pieces`. */
  #pieceBytes(piece: number): number {
    return this.pieces[piece + 1]! - this.pieces[piece]!;
  }

  #put({ start, end }: Part): void {
    this.#writer.again(start, end);
  }

  /** @param piece a number of `pieces`. */
  #piece(piece: number): void {
    this.#writer.again(this.pieces[piece]!, this.pieces[piece + 1]!);
  }

  #contentHash(piece: number): void {
    const end = this.pieces[piece + PAYLOAD + 1]!;
    this.#writer.again(end - HASH_BYTES, end);
  }

  #occurredAt(piece: number): void {
    const start = this.pieces[piece + OCCURRED_AT]!;
    const end = this.pieces[piece + OCCURRED_AT + 1]!;
    if (start === end) return;
    this.#put(OCCURRED_AT_NAME);
    this.#writer.again(start, end);
  }

  /** Memory for the texts of all events, each as long as its pieces make it. */
  #bufferFor(count: number, textBytes: (piece: number) => number): Buffer {
    let sizeBytes = 0;
    for (let index = 0; index < count; index++) sizeBytes += textBytes(index * PIECES);
    if (sizeBytes <= SHARED_TEXT_BYTES_MAX) return Buffer.allocUnsafe(sizeBytes);
    if (sizeBytes < POOLED_BYTES_MIN) return Buffer.allocUnsafeSlow(sizeBytes);
    return Buffer.from(this.memory.take(sizeBytes), 0, sizeBytes);
  }

  #streams(count: number): StreamShare[] {
    const shares = new Map<string, StreamShare>();
    let share: StreamShare | undefined;
    for (let index = 0; index < count; index++) {
      const piece = index * PIECES + STREAM;
      if (share === undefined || !this.#isSame(piece, piece - PIECES)) {
        const start = this.pieces[piece]! + 1;
        const stream = this.#writer.bytes.toString("latin1", start, this.pieces[piece + 1]! - 1);
        share = shares.get(stream) ?? { stream, events: 0, lastIndex: 0 };
        shares.set(stream, share);
      }
      share.events += 1;
      share.lastIndex = index;
    }
    return [...shares.values()];
  }

  #isSame(piece: number, other: number): boolean {
    const { bytes } = this.#writer;
    const start = this.pieces[piece]!;
    const size = this.pieces[piece + 1]! - start;
    const otherStart = this.pieces[other]!;
    if (this.pieces[other + 1]! - otherStart !== size) return false;
    for (let at = 0; at < size; at++) {
      if (bytes[start + at] !== bytes[otherStart + at]) return false;
    }
    return true;
  }
}

/** The whole text, in memory that was made for it. */
function ended(text: BlockText, into: Buffer): Buffer {
  assert(text.sizeBytes === into.length, "a text is as long as was said before");
  text.end();
  return into;
}

function sizeOf(...parts: Part[]): number {
  return parts.reduce((bytes, { start, end }) => bytes + end - start, 0);
}

function newMemory(): ByteWriter {
  const writer = new ByteWriter(MEMORY_BYTES);
  writer.append(CONSTANTS);
  return writer;
}

/** The one of this thread. */
export const batchEncoder: BatchEncoder = new BatchEncoder();
