/**
 * The part of the Redis protocol (RESP2) that a load generator needs: encodes commands, and counts
 * replies without parsing their values. Keeps only the values that are checked: the number of
 * stream entries in a reply, and the id of the last entry.
 */
import { Buffer } from "node:buffer";

const CR = 0x0d;
const BULK = 0x24;
const ARRAY = 0x2a;
const ERROR = 0x2d;
const DIGIT_0 = 0x30;
const MINUS = 0x2d;
/** Longer strings are skipped unread. Entry ids are shorter. */
const READ_STRING_BYTES_MAX = 64;
const ERROR_TEXT_BYTES_MAX = 1024;
const NOTHING = Buffer.alloc(0);

/** Summary of the replies to one exchange. */
export interface RespReply {
  /** Number of arrays that follow a string: stream entries and, in XREAD, the stream itself. */
  entries: number;
  /** Id of the last entry; empty if there is none. */
  lastId: string;
}

/** Encodes a command as an array of bulk strings. */
export function encodeCommand(words: string[]): Buffer {
  const bulks = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return Buffer.from(`*${words.length}\r\n${bulks.join("")}`);
}

/** Finds the end of the replies to one exchange, however they are split into reads. */
export class RespSkimmer {
  /** Values still expected, including those within arrays. */
  #missing = 0;
  #skipBytes = 0;
  #pending: Buffer = NOTHING;
  #entries = 0;
  #lastId = "";
  /** The last value, if it was the first in an array of two. If an array follows, this is an id. */
  #opening: string | null = null;
  #isOpeningNext = false;

  /** @param replies number of replies in the next exchange. */
  expect(replies: number): void {
    this.#missing = replies;
  }

  /**
   * Processes data from the socket.
   * @returns the reply once it is complete; null before that.
   * @throws {Error} with the message of an error reply, or if the data is unexpected.
   */
  push(data: Buffer): RespReply | null {
    const bytes = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    this.#pending = NOTHING;
    let at = 0;
    while (this.#missing > 0 || this.#skipBytes > 0) {
      if (this.#skipBytes > 0) {
        const skipped = Math.min(this.#skipBytes, bytes.length - at);
        this.#skipBytes -= skipped;
        at += skipped;
        if (this.#skipBytes > 0) return null;
        continue;
      }
      const next = this.#takeValue(bytes, at);
      if (next === null) {
        this.#pending = Buffer.from(bytes.subarray(at));
        return null;
      }
      at = next;
    }
    if (at < bytes.length) throw new Error("unexpected data after a Redis reply");
    return this.#finish();
  }

  /** Consumes one value. @returns the offset of the next; null if it is incomplete. */
  #takeValue(bytes: Buffer, at: number): number | null {
    const lineEnd = findLineEnd(bytes, at);
    if (lineEnd === null) {
      if (bytes.length - at > ERROR_TEXT_BYTES_MAX) throw new Error("Redis reply line is too long");
      return null;
    }
    const next = lineEnd + 2;
    const type = bytes[at]!;
    if (type === ERROR) throw new Error(`Redis: ${bytes.toString("utf8", at + 1, lineEnd)}`);
    if (type === ARRAY) return this.#takeArray(readNumber(bytes, at + 1, lineEnd), next);
    if (type === BULK) return this.#takeBulk(readNumber(bytes, at + 1, lineEnd), bytes, next);
    this.#missing -= 1;
    this.#isOpeningNext = false;
    this.#opening = null;
    return next;
  }

  #takeArray(length: number, next: number): number {
    this.#missing += Math.max(length, 0) - 1;
    if (this.#opening !== null) {
      this.#lastId = this.#opening;
      this.#entries += 1;
      this.#opening = null;
    }
    this.#isOpeningNext = length === 2;
    return next;
  }

  #takeBulk(lengthBytes: number, bytes: Buffer, next: number): number | null {
    const isOpening = this.#isOpeningNext && lengthBytes <= READ_STRING_BYTES_MAX;
    const end = next + Math.max(lengthBytes, -2) + 2;
    if (isOpening && lengthBytes >= 0 && end > bytes.length) return null;
    this.#missing -= 1;
    this.#opening = isOpening ? bytes.toString("latin1", next, end - 2) : null;
    this.#isOpeningNext = false;
    if (lengthBytes < 0) return next;
    if (end <= bytes.length) return end;
    this.#skipBytes = end - bytes.length;
    return bytes.length;
  }

  #finish(): RespReply {
    const reply = { entries: this.#entries, lastId: this.#lastId };
    this.#entries = 0;
    this.#lastId = "";
    this.#opening = null;
    this.#isOpeningNext = false;
    return reply;
  }
}

/** Returns the offset of the CR. Lines are a few bytes long, so a loop beats `indexOf()`. */
function findLineEnd(bytes: Buffer, at: number): number | null {
  let end = at;
  while (end < bytes.length && bytes[end] !== CR) end++;
  return end + 1 < bytes.length ? end : null;
}

function readNumber(bytes: Buffer, at: number, end: number): number {
  const isNegative = bytes[at] === MINUS;
  let value = 0;
  for (let digit = isNegative ? at + 1 : at; digit < end; digit++) {
    value = value * 10 + bytes[digit]! - DIGIT_0;
  }
  return isNegative ? -value : value;
}
