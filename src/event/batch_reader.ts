/**
 * Reads a batch from the bytes of an ingest request into its encoded form, in one pass that builds
 * no values. It accepts every valid batch; `batch_fault.ts` finds what is wrong with any other.
 */
import { Buffer, isUtf8 } from "node:buffer";
import { assert } from "../assert.ts";
import {
  BATCH_EVENTS_MAX,
  NAME_BYTES_MAX,
  PAYLOAD_DEPTH_MAX,
  RECORD_KEY_BYTES_MAX,
  STORED_BYTES_PER_BODY_BYTE,
} from "../limits.ts";
import {
  batchEncoder as encoder,
  KIND,
  LINE_END,
  OCCURRED_AT,
  type Part,
  PAYLOAD,
  RECORD_KEY,
  STREAM,
} from "./batch_encoder.ts";
import { throwFault } from "./batch_fault.ts";
import { startsWith } from "./byte_writer.ts";
import { isEventId } from "./event_id.ts";
import { CanonicalCopy, NOT_TAKEN, plainStringEnd, skipBlanks } from "./json/canonical_copy.ts";
import { batchIdFault, nameFault, sourceFault } from "./names.ts";
import { lineageError, lineageMarker } from "./lineage.ts";
import { SOURCE_LINEAGE_STREAM, SYSTEM_SOURCE } from "./system_names.ts";
import { occurredAtFault } from "./timestamp.ts";
import type {
  EncodedEvents,
  LineageMarker,
  PreparedBatch,
  StreamPrecondition,
  SubmittedEvent,
} from "./types.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
/** Nesting depth of a stream precondition. */
const PRECONDITION_DEPTH = 1;
/** Approximate bytes that the encoder adds per event for hashes and member names. */
const ADDED_BYTES = 480;
/**
 * Bodies from this size on reserve enough for the longest payloads. Reserved memory that is never
 * written takes none of the machine's, and isn't kept.
 */
const LARGE_BODY_BYTES_MIN = 4 * 1024 * 1024;

const quoted = (...names: string[]) => names.map((name) => Buffer.from(`"${name}"`));
/** The members of an event, in the order of their pieces. */
const EVENT_MEMBERS = quoted("stream", "record_key", "kind", "occurred_at", "payload");
const PIECE_STEP = RECORD_KEY - STREAM;
const BATCH_MEMBERS = quoted("events", "source", "batch_id", "v", "stream_precondition");
const [EVENTS, SOURCE, BATCH_ID] = [0, 1, 2];
const REQUIRED_BITS = 1 << STREAM | 1 << RECORD_KEY | 1 << KIND | 1 << PAYLOAD;

/** Sentinel after the body; see `CanonicalCopy`. */
const END = Uint8Array.of(0);

/**
 * Validates a batch, then canonicalizes and hashes its payloads.
 * @throws {ApiError} the first fault, or `invalid_source_lineage`.
 */
export function prepareBatch(body: Uint8Array): PreparedBatch {
  const batch = readBatch(body);
  if (batch === null) throwFault(body);
  assert(batch !== null, "a batch without a fault must be accepted");
  return batch;
}

/** Prepares a batch of the service's own, whose source and id clients can't use. */
export function prepareSystemBatch(batchId: string, event: SubmittedEvent): PreparedBatch {
  const body = JSON.stringify({ batch_id: batchId, source: SYSTEM_SOURCE, events: [event] });
  const batch = readBatch(Buffer.from(body), { isSystem: true });
  assert(batch !== null, "the service's own batches are valid");
  return batch;
}

/** Returns null for an invalid batch. @throws {ApiError} `invalid_source_lineage`. */
export function readBatch(body: Uint8Array, { isSystem = false } = {}): PreparedBatch | null {
  if (!isUtf8(body)) return null;
  try {
    return new BatchReader(body, isSystem).read();
  } finally {
    encoder.end();
  }
}

class BatchReader {
  readonly #isSystem: boolean;
  readonly #canonical: CanonicalCopy;
  /** The encoder's scratch buffer, which contains the body from `#start` to `#end`. */
  #bytes: Buffer;
  readonly #start: number;
  readonly #end: number;
  /** Where the value read last is in canonical form: in the body or, if it differs, behind it. */
  #valueStart = 0;
  #valueEnd = 0;
  /** The members of the batch read so far, in canonical form, except for its events. */
  readonly #members: (Part | undefined)[] = BATCH_MEMBERS.map(() => undefined);
  /** Index of the current event's pieces. */
  #pieces = 0;
  /** Bit set of the pieces seen so far in the current event. */
  #seenBits = 0;

  constructor(body: Uint8Array, isSystem: boolean) {
    this.#isSystem = isSystem;
    encoder.begin();
    const { writer } = encoder;
    this.#start = writer.size;
    // Reserve space for the body, its canonical payloads, its lines, and the encoder's additions.
    const addedBytes = Math.min(body.length, BATCH_EVENTS_MAX * ADDED_BYTES);
    const growth = body.length < LARGE_BODY_BYTES_MIN ? 1 : STORED_BYTES_PER_BODY_BYTE;
    writer.reserve(Math.ceil((1 + 2 * growth) * body.length) + addedBytes + END.length);
    writer.append(body);
    this.#end = writer.size;
    writer.append(END);
    this.#bytes = writer.bytes;
    this.#canonical = new CanonicalCopy(writer, this.#end);
  }

  read(): PreparedBatch | null {
    const isEvent = false;
    const at = this.#readObject(skipBlanks(this.#bytes, this.#start), isEvent);
    if (at === NOT_TAKEN || skipBlanks(this.#bytes, at) !== this.#end) return null;
    const [, sourcePart, batchIdPart, version, conditions] = this.#members;
    if (sourcePart === undefined || batchIdPart === undefined || encoder.count === 0) return null;
    if (version !== undefined && this.#json(version) !== "1") return null;
    const source = this.#text(sourcePart);
    const batchId = this.#text(batchIdPart);
    const hasFault = sourceFault(source) !== null || batchIdFault(batchId) !== null;
    if (hasFault && !this.#isSystem) return null;
    const precondition = conditions && preconditionIn(this.#json(conditions));
    const { events, batchDigest } = encoder.finish(sourcePart, batchIdPart);
    const isValid = precondition !== null && events.streams.every(({ stream }) => {
      return nameFault(stream) === null && stream === (precondition?.stream ?? stream);
    });
    if (!isValid) return null;
    const lineage = lineageIn(source, events);
    return { source, batchId, batchDigest, events, precondition, lineage };
  }

  /** Reads a non-empty object, which is an event or the batch, and returns its end index. */
  #readObject(start: number, isEvent: boolean): number {
    const body = this.#bytes;
    if (body[start] !== OPEN_OBJECT) return NOT_TAKEN;
    let at = start;
    do {
      at = this.#readString(skipBlanks(body, at + 1));
      if (at === NOT_TAKEN) return NOT_TAKEN;
      at = skipBlanks(body, at);
      if (body[at] !== COLON) return NOT_TAKEN;
      at = skipBlanks(body, at + 1);
      at = isEvent ? this.#readEventMember(at) : this.#readBatchMember(at);
      if (at === NOT_TAKEN) return NOT_TAKEN;
      at = skipBlanks(body, at);
    } while (body[at] === COMMA);
    return body[at] === CLOSE_OBJECT ? at + 1 : NOT_TAKEN;
  }

  /** Reads the value, at `at`, of the member whose name was read last. @returns its end. */
  #readBatchMember(at: number): number {
    const member = memberAt(this.#bytes, this.#valueStart, BATCH_MEMBERS);
    if (member === NOT_TAKEN || this.#members[member] !== undefined) return NOT_TAKEN;
    let end = NOT_TAKEN;
    if (member === EVENTS) end = this.#readEvents(at);
    else if (member === SOURCE || member === BATCH_ID) end = this.#readString(at);
    else end = this.#copy(at, PRECONDITION_DEPTH);
    this.#members[member] = { start: this.#valueStart, end: this.#valueEnd };
    return end;
  }

  #readEvents(start: number): number {
    const body = this.#bytes;
    if (body[start] !== OPEN_ARRAY) return NOT_TAKEN;
    const isEvent = true;
    let at = start;
    do {
      if (encoder.count === BATCH_EVENTS_MAX) return NOT_TAKEN;
      this.#pieces = encoder.addEvent();
      this.#seenBits = 0;
      at = this.#readObject(skipBlanks(body, at + 1), isEvent);
      if (at === NOT_TAKEN || (this.#seenBits & REQUIRED_BITS) !== REQUIRED_BITS) return NOT_TAKEN;
      at = skipBlanks(body, at);
    } while (body[at] === COMMA);
    return body[at] === CLOSE_ARRAY ? at + 1 : NOT_TAKEN;
  }

  /** Like `#readBatchMember()`; also validates and records the value. */
  #readEventMember(at: number): number {
    const member = memberAt(this.#bytes, this.#valueStart, EVENT_MEMBERS);
    const piece = member * PIECE_STEP;
    if (member === NOT_TAKEN || (this.#seenBits & 1 << piece) !== 0) return NOT_TAKEN;
    this.#seenBits |= 1 << piece;
    if (piece === PAYLOAD) {
      const end = this.#copy(at, PAYLOAD_DEPTH_MAX);
      if (end !== NOT_TAKEN) encoder.endPayload(this.#pieces, this.#valueStart);
      return end;
    }
    const end = this.#readString(at);
    if (end === NOT_TAKEN || !this.#isValid(piece)) return NOT_TAKEN;
    encoder.setPiece(this.#pieces + piece, this.#valueStart, this.#valueEnd);
    return end;
  }

  #readString(at: number): number {
    const end = plainStringEnd(this.#bytes, at);
    if (end === NOT_TAKEN) return this.#bytes[at] === QUOTE ? this.#copy(at, 0) : NOT_TAKEN;
    this.#valueStart = at;
    this.#valueEnd = end;
    return end;
  }

  /** Copies a value in canonical form. @returns its end. */
  #copy(at: number, depthMax: number): number {
    const { writer } = encoder;
    this.#valueStart = writer.size;
    const end = this.#canonical.copy(at, depthMax);
    this.#valueEnd = writer.size;
    this.#bytes = writer.bytes;
    return end;
  }

  /** Whether the string read last is valid, except for stream names, which `read()` checks. */
  #isValid(piece: number): boolean {
    const [start, end] = [this.#valueStart, this.#valueEnd];
    if (piece === OCCURRED_AT) return occurredAtFault(this.#text({ start, end })) === null;
    const isPlain = start < this.#end;
    const sizeBytes = isPlain ? end - start - 2 : Buffer.byteLength(this.#text({ start, end }));
    return sizeBytes > 0 &&
      sizeBytes <= (piece === RECORD_KEY ? RECORD_KEY_BYTES_MAX : NAME_BYTES_MAX);
  }

  #json({ start, end }: Part): string {
    return this.#bytes.toString("utf8", start, end);
  }

  /** Returns the text of a string literal. */
  #text({ start, end }: Part): string {
    const text = this.#json({ start: start + 1, end: end - 1 });
    return text.includes("\\") ? JSON.parse(`"${text}"`) : text;
  }
}

/** A precondition in canonical JSON. No valid name needs an escape. */
const PRECONDITION = /^\{"expected_frontier":(?:null|"([^"\\]*)"),"stream":"([^"\\]*)"\}$/;

/** Returns null for an invalid precondition, given in canonical JSON, except for stream names. */
function preconditionIn(text: string): StreamPrecondition | null {
  const [, expectedFrontier = null, stream] = PRECONDITION.exec(text) ?? [];
  const isValid = expectedFrontier === null || isEventId(expectedFrontier);
  return stream !== undefined && isValid ? { stream, expectedFrontier } : null;
}

/** Reads the lineage marker in a valid batch, if any. @throws {ApiError} */
function lineageIn(source: string, events: EncodedEvents): LineageMarker | undefined {
  const share = events.streams.find(({ stream }) => stream === SOURCE_LINEAGE_STREAM);
  if (share === undefined) return undefined;
  const { lastIndex } = share;
  if (lastIndex > 0) throw lineageError(`the marker must be events[0], not events[${lastIndex}]`);
  const line = events.lines.toString("utf8", 0, events.offsets[LINE_END]);
  // If JSON.parse() confuses escaped names (strict_json.ts), the payload is not that of a marker.
  return lineageMarker(source, JSON.parse(line));
}

/** Returns the number of the member whose name begins at `at`. */
function memberAt(bytes: Buffer, at: number, names: readonly Buffer[]): number {
  for (let member = 0; member < names.length; member++) {
    if (startsWith(bytes, at, names[member]!)) return member;
  }
  return NOT_TAKEN;
}
