/**
 * Encodes the events in a batch as lines and envelopes and computes the batch digest. One scratch
 * buffer holds the pieces of the events in canonical JSON, followed by the output. Batches are
 * encoded one at a time; `begin()` discards an unfinished batch.
 */
import { Buffer } from "node:buffer";
import { freeOwnMemory } from "../free_memory.ts";
import { BATCH_EVENTS_MAX } from "../limits.ts";
import { ByteWriter, putAscii } from "./byte_writer.ts";
import { nextHead } from "./chain.ts";
import { sha256Hex } from "./hash.ts";
import * as layout from "./line_layout.ts";
import type { EncodedEvents, StreamShare } from "./types.ts";

const SCRATCH_BYTES = 64 * 1024;
/** A larger scratch buffer is not reused. 9,000 typical events fit in this size. */
const SCRATCH_KEPT_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Integers per event in `BatchEncoder`: the start and end of each of five pieces. The last piece
 * contains the payload and its content hash. The piece for an absent `occurred_at` is empty.
 */
const PIECES = 10;
export const STREAM = 0;
export const RECORD_KEY = 2;
export const KIND = 4;
export const OCCURRED_AT = 6;
export const PAYLOAD = 8;

/** Integers per event in `EncodedEvents.offsets`, and the index of each. */
export const OFFSETS = 5;
const LINE_OBSERVED_AT = 0;
export const LINE_END = 1;
const ENVELOPE_ID = 2;
const ENVELOPE_OBSERVED_AT = 3;
const ENVELOPE_END = 4;

const textOf = ({ bytes }: layout.Piece) => bytes.toString("latin1");
/** Returns a part of a line without its quotes, which the pieces of an event contain. */
const nameOf = (part: layout.Piece) => textOf(part).slice(1, -1);

/** The parts of a line before its id and after its hash. */
const LINE_START = textOf(layout.OPENING);
const LINE_CLOSE = `${textOf(layout.CLOSING)}\n`;

/** Placeholders that stamping overwrites. */
const NO_ID = "0".repeat(layout.UUID_CHARS);
const NO_TIME = "0".repeat(layout.OBSERVED_AT_CHARS);
const NO_HASH = "0".repeat(layout.HASH_CHARS);

/** A range of the scratch buffer. */
export interface Part {
  start: number;
  end: number;
}

let constantText = "";

/** Defines a constant part of all batches, stored at the start of the scratch buffer. */
function constant(text: string): Part {
  const start = constantText.length;
  constantText += text;
  return { start, end: constantText.length };
}

const LINE_ID = constant(`${LINE_START}${NO_ID}"${nameOf(layout.SOURCE)}`);
const STREAM_NAME = constant(nameOf(layout.STREAM));
const RECORD_KEY_NAME = constant(nameOf(layout.RECORD_KEY));
const KIND_NAME = constant(nameOf(layout.KIND));
const OCCURRED_AT_NAME = constant(nameOf(layout.OCCURRED_AT));
const SOURCE_NAME = constant(nameOf(layout.SOURCE));
const LINE_TIME = constant(`${nameOf(layout.OBSERVED_AT)}"${NO_TIME}${textOf(layout.PAYLOAD)}`);
const CONTENT_HASH_NAME = constant(textOf(layout.CONTENT_HASH));
const LINE_BATCH = constant(`"${nameOf(layout.BATCH_ID)}`);
const LINE_HASH = constant(`${nameOf(layout.EVENT_HASH)}"${NO_HASH}${LINE_CLOSE}`);
const ENVELOPE_START = constant('{"batch_id":');
const ENVELOPE_EVENT = constant(`","event_id":"${NO_ID}","kind":`);
const ENVELOPE_TIME = constant(`,"observed_at":"${NO_TIME}"`);
const DIGEST_START = constant('{"events":[{"content_hash":"');
const DIGEST_NEXT = constant(',{"content_hash":"');
const DIGEST_KIND = constant('","kind":');
const DIGEST_SOURCE = constant('],"source":');
const DIGEST_VERSION = constant(',"v":1}');
const CLOSE = constant("}");

const CONSTANTS = Buffer.from(constantText, "latin1");
const HASH_BYTES = NO_HASH.length;
const TIME_PREFIX_BYTES = ',"observed_at":"'.length;
const ID_PREFIX_BYTES = '","event_id":"'.length;

class BatchEncoder {
  /** The scratch buffer; callers append pieces to it. */
  writer: ByteWriter = newScratch();
  /** Events added so far. */
  count = 0;
  readonly #pieces = new Int32Array(BATCH_EVENTS_MAX * PIECES);

  begin(): void {
    this.writer.size = CONSTANTS.length;
    this.count = 0;
  }

  /** Frees an outsized scratch buffer. Called after each batch. */
  end(): void {
    const { bytes } = this.writer;
    if (bytes.length <= SCRATCH_KEPT_BYTES_MAX) return;
    this.writer = newScratch();
    freeOwnMemory(bytes);
  }

  /** Adds an event, up to BATCH_EVENTS_MAX per batch; returns the index of its pieces. */
  addEvent(): number {
    const first = this.count * PIECES;
    this.#pieces.fill(0, first, first + PIECES);
    this.count += 1;
    return first;
  }

  setPiece(piece: number, start: number, end: number): void {
    this.#pieces[piece] = start;
    this.#pieces[piece + 1] = end;
  }

  /** Hashes an event's payload, which extends from `start` to the end of the buffer. */
  endPayload(event: number, start: number): void {
    const writer = this.writer;
    const hash = sha256Hex(writer.bytes.subarray(start, writer.size));
    this.#put(CONTENT_HASH_NAME);
    writer.ascii(hash);
    this.setPiece(event + PAYLOAD, start, writer.size);
  }

  /** Completes the batch, whose source and id are string literals in the scratch buffer. */
  finish(source: Part, batchId: Part): { events: EncodedEvents; batchDigest: string } {
    const count = this.count;
    const offsets = new Int32Array(count * OFFSETS);
    const lines = this.#lines(source, batchId, offsets);
    const envelopes = this.#envelopes(source, batchId, offsets);
    const batchDigest = this.#digest(source);
    const streams = this.#streams();
    return { events: { count, streams, lines, envelopes, offsets }, batchDigest };
  }

  /** Joins constant parts, since a few long copies are cheaper than many short ones. */
  #join(...parts: readonly Part[]): Part {
    const start = this.writer.size;
    for (const part of parts) this.#put(part);
    return { start, end: this.writer.size };
  }

  #lines(source: Part, batchId: Part, offsets: Int32Array): Buffer {
    const writer = this.writer;
    const upToStream = this.#join(LINE_ID, source, STREAM_NAME);
    const afterPayload = this.#join(LINE_BATCH, batchId, LINE_HASH);
    const start = writer.size;
    for (let index = 0; index < this.count; index++) {
      const piece = index * PIECES;
      this.#putMember(upToStream, piece + STREAM);
      this.#putMember(RECORD_KEY_NAME, piece + RECORD_KEY);
      this.#putMember(KIND_NAME, piece + KIND);
      this.#putOccurredAt(piece);
      offsets[index * OFFSETS + LINE_OBSERVED_AT] = writer.size - start + TIME_PREFIX_BYTES;
      this.#putMember(LINE_TIME, piece + PAYLOAD);
      this.#put(afterPayload);
      offsets[index * OFFSETS + LINE_END] = writer.size - start;
    }
    return writer.takeFrom(start);
  }

  /**
   * Encodes the envelopes. Their members are in RFC 8785 order: batch_id, content_hash, event_id,
   * kind, observed_at, occurred_at, record_key, source, stream.
   */
  #envelopes(source: Part, batchId: Part, offsets: Int32Array): Buffer {
    const writer = this.writer;
    const upToHash = this.#join(ENVELOPE_START, batchId, CONTENT_HASH_NAME);
    const upToStream = this.#join(SOURCE_NAME, source, STREAM_NAME);
    const start = writer.size;
    for (let index = 0; index < this.count; index++) {
      const piece = index * PIECES;
      this.#put(upToHash);
      this.#putContentHash(piece);
      offsets[index * OFFSETS + ENVELOPE_ID] = writer.size - start + ID_PREFIX_BYTES;
      this.#putMember(ENVELOPE_EVENT, piece + KIND);
      offsets[index * OFFSETS + ENVELOPE_OBSERVED_AT] = writer.size - start + TIME_PREFIX_BYTES;
      this.#put(ENVELOPE_TIME);
      this.#putOccurredAt(piece);
      this.#putMember(RECORD_KEY_NAME, piece + RECORD_KEY);
      this.#putMember(upToStream, piece + STREAM);
      this.#put(CLOSE);
      offsets[index * OFFSETS + ENVELOPE_END] = writer.size - start;
    }
    return writer.takeFrom(start);
  }

  #digest(source: Part): string {
    const writer = this.writer;
    const start = writer.size;
    for (let index = 0; index < this.count; index++) {
      const piece = index * PIECES;
      this.#put(index === 0 ? DIGEST_START : DIGEST_NEXT);
      this.#putContentHash(piece);
      this.#putMember(DIGEST_KIND, piece + KIND);
      this.#putOccurredAt(piece);
      this.#putMember(RECORD_KEY_NAME, piece + RECORD_KEY);
      this.#putMember(STREAM_NAME, piece + STREAM);
      this.#put(CLOSE);
    }
    this.#put(DIGEST_SOURCE);
    this.#put(source);
    this.#put(DIGEST_VERSION);
    const digest = sha256Hex(writer.bytes.subarray(start, writer.size));
    writer.size = start;
    return digest;
  }

  #put({ start, end }: Part): void {
    this.writer.copyOwn(start, end);
  }

  #putMember(name: Part, piece: number): void {
    this.#put(name);
    this.writer.copyOwn(this.#pieces[piece]!, this.#pieces[piece + 1]!);
  }

  #putContentHash(piece: number): void {
    const end = this.#pieces[piece + PAYLOAD + 1]!;
    this.writer.copyOwn(end - HASH_BYTES, end);
  }

  #putOccurredAt(piece: number): void {
    const isAbsent = this.#pieces[piece + OCCURRED_AT + 1] === 0;
    if (!isAbsent) this.#putMember(OCCURRED_AT_NAME, piece + OCCURRED_AT);
  }

  #streams(): StreamShare[] {
    const shares = new Map<string, StreamShare>();
    for (let index = 0; index < this.count; index++) {
      const piece = index * PIECES + STREAM;
      const start = this.#pieces[piece]! + 1;
      const stream = this.writer.bytes.toString("latin1", start, this.#pieces[piece + 1]! - 1);
      const share = shares.get(stream) ?? { stream, events: 0, lastIndex: 0 };
      shares.set(stream, share);
      share.events += 1;
      share.lastIndex = index;
    }
    return [...shares.values()];
  }
}

function newScratch(): ByteWriter {
  const writer = new ByteWriter(SCRATCH_BYTES);
  writer.append(CONSTANTS);
  return writer;
}

/** The encoder for this thread. */
export const batchEncoder: BatchEncoder = new BatchEncoder();

/**
 * Completes the lines [first, end) and appends their hashes to the chain. All earlier lines must
 * have been stamped.
 */
export function stampEvents(
  { lines, envelopes, offsets }: EncodedEvents,
  { eventIds, observedAt, chain }: {
    eventIds: readonly string[];
    observedAt: string;
    /** The chain's head, which becomes the one after these lines. */
    chain: { head: string };
  },
  first: number,
  end: number,
): void {
  let lineStart = first === 0 ? 0 : offsets[(first - 1) * OFFSETS + LINE_END]!;
  let envelopeStart = first === 0 ? 0 : offsets[(first - 1) * OFFSETS + ENVELOPE_END]!;
  for (let index = first; index < end; index++) {
    const offset = index * OFFSETS;
    const eventId = eventIds[index]!;
    putAscii(eventId, envelopes, offsets[offset + ENVELOPE_ID]!);
    putAscii(observedAt, envelopes, offsets[offset + ENVELOPE_OBSERVED_AT]!);
    const envelopeEnd = offsets[offset + ENVELOPE_END]!;
    const eventHash = sha256Hex(envelopes.subarray(envelopeStart, envelopeEnd));
    const lineEnd = offsets[offset + LINE_END]!;
    putAscii(eventId, lines, lineStart + LINE_START.length);
    putAscii(observedAt, lines, offsets[offset + LINE_OBSERVED_AT]!);
    putAscii(eventHash, lines, lineEnd - LINE_CLOSE.length - NO_HASH.length);
    chain.head = nextHead(chain.head, eventHash);
    lineStart = lineEnd;
    envelopeStart = envelopeEnd;
  }
}
