/**
 * The fast path from the bytes of an ingest request to an encoded batch: one pass, without making
 * the values. It accepts what well-behaved clients send; all else, and every fault, falls back to
 * the slow path (`batch.ts`), so it needs no messages. Both produce the same batch.
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
  OCCURRED_AT,
  PAYLOAD,
  RECORD_KEY,
  STREAM,
} from "./batch_encoder.ts";
import { CanonicalCopy, NOT_TAKEN, plainStringEnd, skipBlanks } from "./json/canonical_copy.ts";
import { batchIdFault, sourceFault } from "./names.ts";
import { SOURCE_LINEAGE_STREAM } from "./system_names.ts";
import { occurredAtFault } from "./timestamp.ts";
import type { PreparedBatch } from "./types.ts";

const COMMA = 0x2c;
const COLON = 0x3a;
const DIGIT_1 = 0x31;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const QUOTES_BYTES = 2;
/** About what the encoder adds to an event: its content hash, and names and hashes of its line. */
const ADDED_BYTES = 480;

/** 1 for the characters of a name, 2 for those that may not be the first. */
const NAME_BYTES = new Uint8Array(256);
for (const char of "abcdefghijklmnopqrstuvwxyz0123456789_") NAME_BYTES[char.charCodeAt(0)] = 1;
for (const char of ".-") NAME_BYTES[char.charCodeAt(0)] = 2;

/** Members of an event by their piece. */
const EVENT_MEMBERS: Readonly<Record<string, number>> = {
  stream: STREAM,
  record_key: RECORD_KEY,
  kind: KIND,
  occurred_at: OCCURRED_AT,
  payload: PAYLOAD,
};
const REQUIRED_BITS = 1 << STREAM | 1 << RECORD_KEY | 1 << KIND | 1 << PAYLOAD;

const LINEAGE_STREAM_TEXT = `"${SOURCE_LINEAGE_STREAM}"`;

/** Follows the body; see `CanonicalCopy`. */
const END = Uint8Array.of(0);

/** Returns null for a batch that needs the slow path. */
export function readFastBatch(body: Uint8Array): PreparedBatch | null {
  return isUtf8(body) ? new BatchReader(body).read() : null;
}

class BatchReader {
  readonly #payload: CanonicalCopy;
  /** The scratch buffer of the encoder, which begins with the body. */
  #bytes: Buffer;
  readonly #start: number;
  readonly #end: number;
  /** `source` and `batch_id` once read. */
  readonly #names = new Map<string, string>();
  #hasVersion = false;
  #events = 0;

  constructor(body: Uint8Array) {
    encoder.begin();
    const { writer } = encoder;
    this.#start = writer.size;
    // Room for the body, its canonical payloads, its lines, and what the encoder adds.
    const addedBytes = Math.min(body.length, BATCH_EVENTS_MAX * ADDED_BYTES);
    writer.reserve(3 * body.length + addedBytes + END.length);
    writer.append(body);
    this.#end = writer.size;
    writer.append(END);
    this.#bytes = writer.bytes;
    this.#payload = new CanonicalCopy(writer, this.#end);
  }

  read(): PreparedBatch | null {
    if (!this.#readMembers()) return null;
    const source = this.#names.get("source");
    const batchId = this.#names.get("batch_id");
    if (source === undefined || batchId === undefined || this.#events === 0) return null;
    if (sourceFault(source) !== null || batchIdFault(batchId) !== null) return null;
    const { events, batchDigest } = encoder.finish(source, batchId);
    return { source, batchId, batchDigest, events, precondition: undefined, lineage: undefined };
  }

  /** Whether the body is an object of known members, each once. */
  #readMembers(): boolean {
    const body = this.#bytes;
    let at = skipBlanks(body, this.#start);
    if (body[at] !== OPEN_OBJECT) return false;
    do {
      const nameStart = skipBlanks(body, at + 1);
      const nameEnd = plainStringEnd(body, nameStart);
      if (nameEnd === NOT_TAKEN) return false;
      const name = this.#text(nameStart, nameEnd);
      at = skipBlanks(body, nameEnd);
      if (body[at] !== COLON) return false;
      at = this.#readMember(name, skipBlanks(body, at + 1));
      if (at === NOT_TAKEN) return false;
      at = skipBlanks(body, at);
    } while (body[at] === COMMA);
    return body[at] === CLOSE_OBJECT && skipBlanks(body, at + 1) === this.#end;
  }

  /** Returns the index after the value. */
  #readMember(name: string, at: number): number {
    switch (name) {
      case "events":
        return this.#events === 0 ? this.#readEvents(at) : NOT_TAKEN;
      case "source":
      case "batch_id": {
        const end = this.#names.has(name) ? NOT_TAKEN : plainStringEnd(this.#bytes, at);
        if (end !== NOT_TAKEN) this.#names.set(name, this.#text(at, end));
        return end;
      }
      case "v":
        if (this.#hasVersion || this.#bytes[at] !== DIGIT_1) return NOT_TAKEN;
        this.#hasVersion = true;
        return at + 1;
      default:
        return NOT_TAKEN;
    }
  }

  #readEvents(start: number): number {
    const body = this.#bytes;
    if (body[start] !== OPEN_ARRAY) return NOT_TAKEN;
    let at = start;
    do {
      if (this.#events === BATCH_EVENTS_MAX) return NOT_TAKEN;
      at = this.#readEvent(skipBlanks(body, at + 1));
      if (at === NOT_TAKEN) return NOT_TAKEN;
      this.#events += 1;
      at = skipBlanks(body, at);
    } while (body[at] === COMMA);
    return body[at] === CLOSE_ARRAY ? at + 1 : NOT_TAKEN;
  }

  #readEvent(start: number): number {
    const body = this.#bytes;
    const piece = encoder.addEvent();
    if (body[start] !== OPEN_OBJECT) return NOT_TAKEN;
    let at = start;
    let seenBits = 0;
    do {
      at = skipBlanks(body, at + 1);
      const member = this.#eventMember(at);
      if (member === NOT_TAKEN || (seenBits & 1 << member) !== 0) return NOT_TAKEN;
      seenBits |= 1 << member;
      at = skipBlanks(body, plainStringEnd(body, at));
      if (body[at] !== COLON) return NOT_TAKEN;
      at = this.#readPiece(member, piece + member, skipBlanks(body, at + 1));
      if (at === NOT_TAKEN) return NOT_TAKEN;
      at = skipBlanks(body, at);
    } while (body[at] === COMMA);
    if (body[at] !== CLOSE_OBJECT || (seenBits & REQUIRED_BITS) !== REQUIRED_BITS) return NOT_TAKEN;
    return at + 1;
  }

  /** The piece of the member whose name begins at `at`. */
  #eventMember(at: number): number {
    const body = this.#bytes;
    for (let number = 0; number < MEMBER_NAMES.length; number++) {
      const { name, member } = MEMBER_NAMES[number]!;
      // The first letters of the names differ.
      if (body[at + 1] === name[1] && startsWith(body, at, name)) return member;
    }
    return NOT_TAKEN;
  }

  /** Records the range of the value at `at`; returns the index after it. */
  #readPiece(member: number, number: number, at: number): number {
    if (member === PAYLOAD) return this.#readPayload(number, at);
    const end = plainStringEnd(this.#bytes, at);
    if (end === NOT_TAKEN || !this.#isRight(member, at, end)) return NOT_TAKEN;
    this.#take(number, at, end);
    return end;
  }

  #readPayload(number: number, at: number): number {
    const { writer } = encoder;
    const start = writer.size;
    const end = this.#payload.copy(at, PAYLOAD_DEPTH_MAX);
    if (end === NOT_TAKEN) return NOT_TAKEN;
    this.#take(number, start, encoder.endPayload(start));
    this.#bytes = writer.bytes;
    return end;
  }

  #take(number: number, start: number, end: number): void {
    const { pieces } = encoder;
    pieces[number] = start;
    pieces[number + 1] = end;
  }

  /** Whether a string follows the rule of its member. */
  #isRight(member: number, start: number, end: number): boolean {
    const sizeBytes = end - start - QUOTES_BYTES;
    switch (member) {
      case STREAM:
        return sizeBytes <= NAME_BYTES_MAX && isName(this.#bytes, start + 1, end - 1) &&
          !(sizeBytes + QUOTES_BYTES === LINEAGE_STREAM_TEXT.length &&
            this.#bytes.toString("latin1", start, end) === LINEAGE_STREAM_TEXT);
      case RECORD_KEY:
        return sizeBytes > 0 && sizeBytes <= RECORD_KEY_BYTES_MAX;
      case KIND:
        return sizeBytes > 0 && sizeBytes <= NAME_BYTES_MAX;
      default:
        return occurredAtFault(this.#bytes.toString("latin1", start + 1, end - 1)) === null;
    }
  }

  /** Decodes a string without escapes. */
  #text(start: number, end: number): string {
    return this.#bytes.toString("utf8", start + 1, end - 1);
  }
}

const MEMBER_NAMES = Object.entries(EVENT_MEMBERS).map(([name, member]) => ({
  name: Buffer.from(`"${name}"`),
  member,
}));

function startsWith(bytes: Buffer, at: number, text: Uint8Array): boolean {
  for (let index = 1; index < text.length; index++) {
    if (bytes[at + index] !== text[index]) return false;
  }
  return bytes[at] === text[0];
}

function isName(bytes: Buffer, start: number, end: number): boolean {
  if (start === end || NAME_BYTES[bytes[start]!] !== 1) return false;
  for (let at = start; at < end; at++) {
    if (NAME_BYTES[bytes[at]!] === 0) return false;
  }
  return true;
}
