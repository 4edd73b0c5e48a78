/**
 * Messages to PostgreSQL, protocol version 3 (its documentation, "Message Formats"), as bytes that
 * are made once and sent many times. Statements are prepared; parameters travel in binary.
 */
import { Buffer } from "node:buffer";

const PROTOCOL_VERSION = 196608;
const FORMAT_BINARY = 1;
const NULL_LENGTH = -1;

/** Signature, flags and extension length that a binary COPY begins with. */
const COPY_SIGNATURE = Buffer.from("PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const COPY_TRAILER = int16(-1);

/** What a session begins with. */
export function startupMessage(user: string, database: string): Buffer {
  const parameters = Buffer.from(`user\0${user}\0database\0${database}\0\0`);
  return Buffer.concat([int32(parameters.length + 8), int32(PROTOCOL_VERSION), parameters]);
}

/** Statements to run as text, one after the other. */
export function queryMessage(sql: string): Buffer {
  return message("Q", cString(sql));
}

/** Prepares a statement under a name; the types of its parameters follow from the text. */
export function parseMessage(name: string, sql: string): Buffer {
  return message("P", Buffer.concat([cString(name), cString(sql), int16(0)]));
}

/** Runs a prepared statement: parameters and results in binary. */
export function executeMessages(name: string, parameters: Buffer[]): Buffer {
  const bind = Buffer.concat([
    cString(""),
    cString(name),
    int16(1),
    int16(FORMAT_BINARY),
    int16(parameters.length),
    ...parameters.map(field),
    int16(1),
    int16(FORMAT_BINARY),
  ]);
  return Buffer.concat([message("B", bind), message("E", Buffer.concat([cString(""), int32(0)]))]);
}

/** Ends a group of messages: what they did is committed, and one reply says so. */
export function syncMessage(): Buffer {
  return message("S", Buffer.alloc(0));
}

/** The rows of a binary COPY, and its end. A column is null or its bytes. */
export function copyMessages(rows: (Buffer | null)[][]): Buffer {
  const data: Buffer[] = [COPY_SIGNATURE];
  for (const columns of rows) data.push(int16(columns.length), ...columns.map(field));
  data.push(COPY_TRAILER);
  return Buffer.concat([message("d", Buffer.concat(data)), message("c", Buffer.alloc(0))]);
}

/** The end of a session. */
export function terminateMessage(): Buffer {
  return message("X", Buffer.alloc(0));
}

/** A bigint parameter or column. */
export function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

/** A timestamptz parameter or column: microseconds since the beginning of 2000. */
export function timestamp(text: string): Buffer {
  return int64(BigInt(Date.parse(text) - Date.UTC(2000, 0, 1)) * 1000n);
}

function message(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type, "latin1"), int32(body.length + 4), body]);
}

function field(bytes: Buffer | null): Buffer {
  return bytes === null ? int32(NULL_LENGTH) : Buffer.concat([int32(bytes.length), bytes]);
}

function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
