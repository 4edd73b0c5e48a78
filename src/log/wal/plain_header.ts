/**
 * Reads the header line of a commit by the places of its parts, as long as it is spelled as most
 * are: by the writer, with names of ASCII characters that need no escape. A start reads a hundred
 * thousand of them; what is not plain is left to JSON.parse(), which takes twice as long.
 */
import { Buffer } from "node:buffer";
import type { BatchEntry, Commit } from "./commit_frame.ts";
import {
  areHexDigits,
  HASH_CHARS,
  hasPieceAt,
  isUuidAt,
  type Piece,
  pieceOf,
  UUID_CHARS,
  viewFor,
} from "../line/line_bytes.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const DIGIT_0 = 0x30;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const TILDE = 0x7e;
/** Counts of more digits are left to JSON.parse(). */
const COUNT_DIGITS_MAX = 15;

/** What stands before the parts, in their order. */
const BEFORE_BATCHES = pieceOf(Buffer.from('{"commit":{"batches":['));
const BEFORE_DIGEST = pieceOf(Buffer.from('{"batch_digest":"'));
const BEFORE_BATCH_ID = pieceOf(Buffer.from('","batch_id":"'));
const BEFORE_EVENTS = pieceOf(Buffer.from('","events":'));
const BEFORE_FIRST_ID = pieceOf(Buffer.from(',"first_event_id":"'));
const BEFORE_LAST_ID = pieceOf(Buffer.from('","last_event_id":"'));
const BEFORE_SOURCE = pieceOf(Buffer.from('","source":"'));
const AFTER_SOURCE = pieceOf(Buffer.from('"}'));
const BEFORE_BYTES = pieceOf(Buffer.from('],"bytes":'));
const BEFORE_HEAD = pieceOf(Buffer.from(',"head":"'));
const BEFORE_SHA256 = pieceOf(Buffer.from('"},"sha256":"'));
const END = pieceOf(Buffer.from('"}'));

/** What a header says. Its texts are parts of one: who keeps one for long keeps a copy. */
export interface PlainHeader {
  commit: Commit;
  sha256: string;
}

/**
 * Reads the plain headers among bytes, each part by part. After the first part that is not as it
 * should be nothing that it reads means anything, and `#isPlain` is false.
 */
export class PlainHeaderReader {
  readonly #bytes: Buffer;
  readonly #view: DataView;
  /** The line. */
  #text = "";
  #start = 0;
  /** The next byte to be read. */
  #at = 0;
  #isPlain = true;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#view = viewFor(bytes);
  }

  /** What the line [start, end), without its LF, says; null when it is no plain header. */
  read(start: number, end: number): PlainHeader | null {
    this.#text = this.#bytes.toString("latin1", start, end);
    this.#start = this.#at = start;
    this.#isPlain = true;
    this.#skip(BEFORE_BATCHES);
    const batches: BatchEntry[] = [];
    do batches.push(this.#entry()); while (this.#skipComma());
    this.#skip(BEFORE_BYTES);
    const bytes = this.#count();
    this.#skip(BEFORE_HEAD);
    const head = this.#hash();
    this.#skip(BEFORE_SHA256);
    const sha256 = this.#hash();
    this.#skip(END);
    const isWhole = this.#isPlain && this.#at === end;
    return isWhole ? { commit: { batches, bytes, head }, sha256 } : null;
  }

  #entry(): BatchEntry {
    this.#skip(BEFORE_DIGEST);
    const batch_digest = this.#hash();
    this.#skip(BEFORE_BATCH_ID);
    const batch_id = this.#name();
    this.#skip(BEFORE_EVENTS);
    const events = this.#count();
    this.#skip(BEFORE_FIRST_ID);
    const first_event_id = this.#eventId();
    this.#skip(BEFORE_LAST_ID);
    const last_event_id = this.#eventId();
    this.#skip(BEFORE_SOURCE);
    const source = this.#name();
    this.#skip(AFTER_SOURCE);
    return { batch_digest, batch_id, events, first_event_id, last_event_id, source };
  }

  #skip(expected: Piece): void {
    if (!hasPieceAt(this.#view, this.#at, expected)) this.#isPlain = false;
    this.#at += expected.sizeBytes;
  }

  /** Whether a comma is next; that is skipped then. */
  #skipComma(): boolean {
    const isNext = this.#isPlain && this.#bytes[this.#at] === COMMA;
    if (isNext) this.#at++;
    return isNext;
  }

  #hash(): string {
    const end = this.#at + HASH_CHARS;
    if (!areHexDigits(this.#view, this.#at, HASH_CHARS)) this.#isPlain = false;
    return this.#take(end);
  }

  /** A UUIDv7 in its canonical form. */
  #eventId(): string {
    const end = this.#at + UUID_CHARS;
    const isId = isUuidAt(this.#view, this.#at) && isVersion7(this.#bytes, this.#at);
    if (!isId) this.#isPlain = false;
    return this.#take(end);
  }

  #name(): string {
    let end = this.#at;
    while (standsForItself(this.#bytes[end]!)) end++;
    return this.#take(end);
  }

  /** A whole number above 0. */
  #count(): number {
    const start = this.#at;
    let value = 0;
    let digit = this.#bytes[this.#at]! - DIGIT_0;
    while (digit >= 0 && digit <= 9) {
      value = value * 10 + digit;
      digit = this.#bytes[++this.#at]! - DIGIT_0;
    }
    const digits = this.#at - start;
    const isCount = digits > 0 && digits <= COUNT_DIGITS_MAX && this.#bytes[start] !== DIGIT_0;
    if (!isCount) this.#isPlain = false;
    return value;
  }

  #take(end: number): string {
    const text = this.#text.slice(this.#at - this.#start, end - this.#start);
    this.#at = end;
    return text;
  }
}

/** Whether a character of a name is ASCII and needs no escape. */
function standsForItself(code: number): boolean {
  return code >= SPACE && code <= TILDE && code !== QUOTE && code !== BACKSLASH;
}

const VERSION_7 = 0x37;

/** Whether the UUID that is spelled here is a UUIDv7 (RFC 9562 section 5.7). */
function isVersion7(bytes: Uint8Array, start: number): boolean {
  const variant = bytes[start + 19]!;
  const isVariant = variant === 0x38 || variant === 0x39 || variant === 0x61 || variant === 0x62;
  return isVariant && bytes[start + 14] === VERSION_7;
}
