/**
 * The fast path from the bytes of an ingest request to an encoded batch, in one pass that builds no
 * values. It accepts what typical clients send. Anything else, including every invalid batch, falls
 * back to the slow path (`batch.ts`), which reports errors. Both produce the same batch.
 */
import { Buffer, isUtf8 } from "node:buffer";
import {
  BATCH_EVENTS_MAX,
  NAME_BYTES_MAX,
  PAYLOAD_DEPTH_MAX,
  RECORD_KEY_BYTES_MAX,
} from "../limits.ts";
import {
  batchEncoder as encoder,
  KIND,
  type Part,
  PAYLOAD,
  RECORD_KEY,
  STREAM,
} from "./batch_encoder.ts";
import { startsWith } from "./byte_writer.ts";
import { isEventId } from "./event_id.ts";
import { CanonicalCopy, NOT_TAKEN, plainStringEnd, skipBlanks } from "./json/canonical_copy.ts";
import { batchIdFault, nameFault, sourceFault } from "./names.ts";
import { SOURCE_LINEAGE_STREAM } from "./system_names.ts";
import { occurredAtFault } from "./timestamp.ts";
import type { PreparedBatch, StreamPrecondition, StreamShare } from "./types.ts";

const COMMA = 0x2c;
const COLON = 0x3a;
const DIGIT_1 = 0x31;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const QUOTES_BYTES = 2;
/** Nesting depth of a stream precondition. */
const PRECONDITION_DEPTH = 1;
/** Approximate bytes that the encoder adds per event for hashes and member names. */
const ADDED_BYTES = 480;

const quoted = (...names: string[]) => names.map((name) => Buffer.from(`"${name}"`));
/** The members of an event, in the order of their pieces. */
const EVENT_MEMBERS = quoted("stream", "record_key", "kind", "occurred_at", "payload");
const PIECE_STEP = RECORD_KEY - STREAM;
const BATCH_MEMBERS = quoted("events", "source", "batch_id", "v", "stream_precondition");
const [EVENTS, SOURCE, BATCH_ID, VERSION, PRECONDITION] = [0, 1, 2, 3, 4];
const REQUIRED_BITS = 1 << STREAM | 1 << RECORD_KEY | 1 << KIND | 1 << PAYLOAD;

/** Sentinel after the body; see `CanonicalCopy`. */
const END = Uint8Array.of(0);

/** Valid large payloads by their start in the body: the end, and the canonical form. */
export type PayloadCopies = Map<number, { endByte: number; copy: () => string }>;

/** Payloads from this size on are not copied again on the slow path. */
const KEPT_COPY_BYTES_MIN = 64 * 1024;

/**
 * Returns null for a batch that needs the slow path.
 * @param copies receives the large payloads, which are valid until the next batch is read.
 */
export function readFastBatch(
  body: Uint8Array,
  copies: PayloadCopies = new Map(),
): PreparedBatch | null {
  return isUtf8(body) ? new BatchReader(body, copies).read() : null;
}

class BatchReader {
  readonly #payload: CanonicalCopy;
  /** The encoder's scratch buffer, which contains the body from `#start` to `#end`. */
  #bytes: Buffer;
  readonly #start: number;
  readonly #end: number;
  readonly #copies: PayloadCopies;
  #source: Part | undefined;
  #batchId: Part | undefined;
  /** The stream precondition in canonical JSON. */
  #precondition: string | undefined;
  #hasVersion = false;
  #events = 0;
  /** Index of the current event's pieces. */
  #pieces = 0;
  /** Bit set of the pieces seen so far in the current event. */
  #seenBits = 0;

  constructor(body: Uint8Array, copies: PayloadCopies) {
    this.#copies = copies;
    encoder.begin();
    const { writer } = encoder;
    this.#start = writer.size;
    // Reserve space for the body, its canonical payloads, its lines, and the encoder's additions.
    const addedBytes = Math.min(body.length, BATCH_EVENTS_MAX * ADDED_BYTES);
    writer.reserve(3 * body.length + addedBytes + END.length);
    writer.append(body);
    this.#end = writer.size;
    writer.append(END);
    this.#bytes = writer.bytes;
    this.#payload = new CanonicalCopy(writer, this.#end);
  }

  read(): PreparedBatch | null {
    const isEvent = false;
    const at = this.#readObject(skipBlanks(this.#bytes, this.#start), isEvent);
    if (at === NOT_TAKEN || skipBlanks(this.#bytes, at) !== this.#end) return null;
    if (this.#source === undefined || this.#batchId === undefined || this.#events === 0) {
      return null;
    }
    const source = this.#text(this.#source);
    const batchId = this.#text(this.#batchId);
    if (sourceFault(source) !== null || batchIdFault(batchId) !== null) return null;
    const { events, batchDigest } = encoder.finish(this.#source, this.#batchId);
    const isPlain = events.streams.every(({ stream }) =>
      nameFault(stream) === null && stream !== SOURCE_LINEAGE_STREAM
    );
    const precondition = this.#checkPrecondition(events.streams);
    if (!isPlain || precondition === null) return null;
    return { source, batchId, batchDigest, events, precondition, lineage: undefined };
  }

  /** Returns null for a precondition that needs the slow path. */
  #checkPrecondition(streams: StreamShare[]): StreamPrecondition | undefined | null {
    if (this.#precondition === undefined) return undefined;
    const members = JSON.parse(this.#precondition);
    const { stream, expected_frontier: expectedFrontier } = members;
    const isValid = (expectedFrontier === null || isEventId(expectedFrontier)) &&
      streams.every((share) => share.stream === stream) && Object.keys(members).length === 2;
    return isValid ? { stream, expectedFrontier } : null;
  }

  /** Reads a non-empty object, which is an event or the batch, and returns its end index. */
  #readObject(start: number, isEvent: boolean): number {
    const body = this.#bytes;
    if (body[start] !== OPEN_OBJECT) return NOT_TAKEN;
    let at = start;
    do {
      const nameAt = skipBlanks(body, at + 1);
      const nameEnd = plainStringEnd(body, nameAt);
      if (nameEnd === NOT_TAKEN) return NOT_TAKEN;
      at = skipBlanks(body, nameEnd);
      if (body[at] !== COLON) return NOT_TAKEN;
      at = skipBlanks(body, at + 1);
      at = isEvent ? this.#readEventMember(nameAt, at) : this.#readBatchMember(nameAt, at);
      if (at === NOT_TAKEN) return NOT_TAKEN;
      at = skipBlanks(body, at);
    } while (body[at] === COMMA);
    return body[at] === CLOSE_OBJECT ? at + 1 : NOT_TAKEN;
  }

  /** Reads the member whose name begins at `nameAt`. @returns the end of its value, at `at`. */
  #readBatchMember(nameAt: number, at: number): number {
    switch (memberAt(this.#bytes, nameAt, BATCH_MEMBERS)) {
      case EVENTS:
        return this.#events === 0 ? this.#readEvents(at) : NOT_TAKEN;
      case SOURCE:
        if (this.#source !== undefined) return NOT_TAKEN;
        this.#source = { start: at, end: plainStringEnd(this.#bytes, at) };
        return this.#source.end;
      case BATCH_ID:
        if (this.#batchId !== undefined) return NOT_TAKEN;
        this.#batchId = { start: at, end: plainStringEnd(this.#bytes, at) };
        return this.#batchId.end;
      case VERSION:
        if (this.#hasVersion || this.#bytes[at] !== DIGIT_1) return NOT_TAKEN;
        this.#hasVersion = true;
        return at + 1;
      case PRECONDITION:
        return this.#readPrecondition(at);
      default:
        return NOT_TAKEN;
    }
  }

  /** Copies the precondition in canonical form, which excludes repeated names. */
  #readPrecondition(at: number): number {
    const { writer } = encoder;
    if (this.#bytes[at] !== OPEN_OBJECT || this.#precondition !== undefined) return NOT_TAKEN;
    const start = writer.size;
    const end = this.#payload.copy(at, PRECONDITION_DEPTH);
    this.#bytes = writer.bytes;
    this.#precondition = this.#bytes.toString("utf8", start, writer.size);
    writer.size = start;
    // No valid name needs an escape, and V8 may confuse escaped ones (`strict_json.ts`).
    return this.#precondition.includes("\\") ? NOT_TAKEN : end;
  }

  #readEvents(start: number): number {
    const body = this.#bytes;
    if (body[start] !== OPEN_ARRAY) return NOT_TAKEN;
    const isEvent = true;
    let at = start;
    do {
      if (this.#events === BATCH_EVENTS_MAX) return NOT_TAKEN;
      this.#pieces = encoder.addEvent();
      this.#seenBits = 0;
      at = this.#readObject(skipBlanks(body, at + 1), isEvent);
      if (at === NOT_TAKEN || (this.#seenBits & REQUIRED_BITS) !== REQUIRED_BITS) return NOT_TAKEN;
      this.#events += 1;
      at = skipBlanks(body, at);
    } while (body[at] === COMMA);
    return body[at] === CLOSE_ARRAY ? at + 1 : NOT_TAKEN;
  }

  /** Validates and records a member. @returns the end of its value. */
  #readEventMember(nameAt: number, at: number): number {
    const member = memberAt(this.#bytes, nameAt, EVENT_MEMBERS);
    const piece = member * PIECE_STEP;
    if (member === NOT_TAKEN || (this.#seenBits & 1 << piece) !== 0) return NOT_TAKEN;
    this.#seenBits |= 1 << piece;
    if (piece === PAYLOAD) return this.#readPayload(at);
    const end = plainStringEnd(this.#bytes, at);
    if (end === NOT_TAKEN || !this.#isValid(piece, at, end)) return NOT_TAKEN;
    encoder.setPiece(this.#pieces + piece, at, end);
    return end;
  }

  #readPayload(at: number): number {
    const { writer } = encoder;
    const start = writer.size;
    const end = this.#payload.copy(at, PAYLOAD_DEPTH_MAX);
    if (end === NOT_TAKEN) return NOT_TAKEN;
    const copyEnd = writer.size;
    if (end - at >= KEPT_COPY_BYTES_MIN) {
      const copy = () => writer.bytes.toString("utf8", start, copyEnd);
      this.#copies.set(at - this.#start, { endByte: end - this.#start, copy });
    }
    encoder.endPayload(this.#pieces, start);
    this.#bytes = writer.bytes;
    return end;
  }

  /** Whether a string is valid for its member, except for stream names, which `read()` checks. */
  #isValid(piece: number, start: number, end: number): boolean {
    const sizeBytes = end - start - QUOTES_BYTES;
    switch (piece) {
      case STREAM:
      case KIND:
        return sizeBytes > 0 && sizeBytes <= NAME_BYTES_MAX;
      case RECORD_KEY:
        return sizeBytes > 0 && sizeBytes <= RECORD_KEY_BYTES_MAX;
      default:
        return occurredAtFault(this.#bytes.toString("latin1", start + 1, end - 1)) === null;
    }
  }

  /** Returns the characters of a string literal. */
  #text({ start, end }: Part): string {
    return this.#bytes.toString("utf8", start + 1, end - 1);
  }
}

/** Returns the number of the member whose name begins at `at`. */
function memberAt(bytes: Buffer, at: number, names: readonly Buffer[]): number {
  for (let member = 0; member < names.length; member++) {
    if (startsWith(bytes, at, names[member]!)) return member;
  }
  return NOT_TAKEN;
}
