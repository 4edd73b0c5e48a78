/**
 * Counts messages from PostgreSQL, protocol version 3, without parsing their values. Keeps only the
 * values that are checked: the number of rows, the first column of the last row, and the command
 * tag.
 */
import { Buffer } from "node:buffer";

const HEADER_BYTES = 5;
/** The start of a row: number of columns, length of the first, and 8 bytes of it. */
const ROW_START_BYTES = 14;
const FIRST_COLUMN_AT = 6;
const MESSAGE_READ_BYTES_MAX = 64 * 1024;
const NOTHING = Buffer.alloc(0);

const TYPE = {
  rows: 0x44,
  ready: 0x5a,
  error: 0x45,
  complete: 0x43,
  notification: 0x41,
  authentication: 0x52,
} as const;

/** Summary of the replies to one exchange. */
export interface PgReply {
  /** Number of rows. */
  rows: number;
  /** First column of the last row, if it is a bigint; 0 without rows. */
  lastId: bigint;
  /** Tag of the last statement, such as `INSERT 0 1000`. */
  tag: string;
}

/** Finds the end of the reply to one exchange, however it is split into reads. */
export class PgSkimmer {
  readonly #onNotification: () => void;
  #missing = 0;
  #skipBytes = 0;
  #pending: Buffer = NOTHING;
  #rows = 0;
  #idHigh = 0;
  #idLow = 0;
  #tag = "";

  /** @param onNotification called for each NOTIFY. */
  constructor(onNotification: () => void = () => {}) {
    this.#onNotification = onNotification;
  }

  /** @param replies number of "ready for query" messages that end the next exchange. */
  expect(replies: number): void {
    this.#missing = replies;
  }

  /**
   * Processes data from the socket.
   * @returns the reply once it is complete; null before that, or if none is expected.
   * @throws {Error} with the message of an error from the server.
   */
  push(data: Buffer): PgReply | null {
    const wasExpected = this.#missing > 0;
    const bytes = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    this.#pending = NOTHING;
    let at = 0;
    while (at < bytes.length) {
      if (this.#skipBytes > 0) {
        const skipped = Math.min(this.#skipBytes, bytes.length - at);
        this.#skipBytes -= skipped;
        at += skipped;
        continue;
      }
      const next = this.#takeMessage(bytes, at);
      if (next === null) {
        this.#pending = Buffer.from(bytes.subarray(at));
        break;
      }
      at = next;
    }
    return wasExpected && this.#missing === 0 ? this.#finish() : null;
  }

  /** Consumes one message. @returns the offset of the next; null if it is incomplete. */
  #takeMessage(bytes: Buffer, at: number): number | null {
    if (bytes.length < at + HEADER_BYTES) return null;
    const type = bytes[at]!;
    const bodyBytes = int32At(bytes, at + 1) - 4;
    if (bodyBytes < 0) throw new Error(`invalid PostgreSQL message length: ${bodyBytes + 4}`);
    const bodyAt = at + HEADER_BYTES;
    const neededBytes = readBytes(type, bodyBytes);
    if (neededBytes > MESSAGE_READ_BYTES_MAX) throw new Error("PostgreSQL message is too long");
    if (bytes.length < bodyAt + neededBytes) return null;
    this.#read(type, bytes, bodyAt, bodyBytes);
    const end = bodyAt + bodyBytes;
    if (end <= bytes.length) return end;
    this.#skipBytes = end - bytes.length;
    return bytes.length;
  }

  #read(type: number, bytes: Buffer, bodyAt: number, bodyBytes: number): void {
    switch (type) {
      case TYPE.rows:
        this.#rows += 1;
        if (bodyBytes >= ROW_START_BYTES) {
          this.#idHigh = int32At(bytes, bodyAt + FIRST_COLUMN_AT);
          this.#idLow = int32At(bytes, bodyAt + FIRST_COLUMN_AT + 4);
        }
        return;
      case TYPE.ready:
        this.#missing -= 1;
        return;
      case TYPE.complete:
        this.#tag = bytes.toString("latin1", bodyAt, bodyAt + bodyBytes - 1);
        return;
      case TYPE.notification:
        return this.#onNotification();
      case TYPE.error:
        throw new Error(
          `PostgreSQL: ${errorText(bytes.toString("utf8", bodyAt, bodyAt + bodyBytes))}`,
        );
      case TYPE.authentication:
        if (int32At(bytes, bodyAt) !== 0) throw new Error("PostgreSQL requires a password");
    }
  }

  #finish(): PgReply {
    const lastId = (BigInt(this.#idHigh) << 32n) | BigInt(this.#idLow >>> 0);
    const reply = { rows: this.#rows, lastId, tag: this.#tag };
    this.#rows = 0;
    this.#idHigh = 0;
    this.#idLow = 0;
    this.#tag = "";
    return reply;
  }
}

/** Reads an integer without the checks of Buffer's methods, which would dominate a row's cost. */
function int32At(bytes: Buffer, at: number): number {
  return bytes[at]! << 24 | bytes[at + 1]! << 16 | bytes[at + 2]! << 8 | bytes[at + 3]!;
}

/** Returns how many bytes of a message must arrive before it is parsed; 0 for most messages. */
function readBytes(type: number, bodyBytes: number): number {
  switch (type) {
    case TYPE.rows:
      return Math.min(bodyBytes, ROW_START_BYTES);
    case TYPE.ready:
    case TYPE.error:
    case TYPE.complete:
    case TYPE.authentication:
      return bodyBytes;
    default:
      return 0;
  }
}

/** Returns an error's message: the field `M`. Each field is a letter and a string. */
function errorText(body: string): string {
  return body.split("\0").find((field) => field.startsWith("M"))?.slice(1) ?? body;
}
