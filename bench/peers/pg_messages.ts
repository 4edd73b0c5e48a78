/**
 * Messages to PostgreSQL, protocol version 3 (see "Message Formats" in its documentation). They are
 * built as bytes once and sent many times. Statements are prepared, and parameters are binary.
 */
import { Buffer } from "node:buffer";

const PROTOCOL_VERSION = 196608;
const FORMAT_BINARY = 1;

/** Special characters in COPY, and their escapes. */
const COPY_ESCAPES: Record<string, string> = {
  "\\": "\\\\",
  "\t": "\\t",
  "\n": "\\n",
  "\r": "\\r",
};

/** Builds the first message in a session. */
export function startupMessage(user: string, database: string): Buffer {
  const parameters = Buffer.from(`user\0${user}\0database\0${database}\0\0`);
  return Buffer.concat([int32(parameters.length + 8), int32(PROTOCOL_VERSION), parameters]);
}

/** Builds a simple query, whose statements are run one after another. */
export function queryMessage(sql: string): Buffer {
  return message("Q", cString(sql));
}

/** Prepares a named statement; the server infers parameter types. */
export function parseMessage(name: string, sql: string): Buffer {
  return message("P", Buffer.concat([cString(name), cString(sql), int16(0)]));
}

/** Runs a prepared statement with binary parameters and results. */
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

/** Builds a Sync message, which ends a group of messages, commits them and yields one reply. */
export function syncMessage(): Buffer {
  return message("S", Buffer.alloc(0));
}

/** Builds the rows and end of a COPY, in text format, which PostgreSQL reads faster than binary. */
export function copyMessages(rows: string[][]): Buffer {
  const escaped = (value: string) => value.replace(/[\\\t\n\r]/g, (char) => COPY_ESCAPES[char]!);
  const lines = rows.map((values) => `${values.map(escaped).join("\t")}\n`);
  return Buffer.concat([message("d", Buffer.from(lines.join(""))), message("c", Buffer.alloc(0))]);
}

/** Builds the last message in a session. */
export function terminateMessage(): Buffer {
  return message("X", Buffer.alloc(0));
}

/** Encodes a bigint parameter or column. */
export function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

/** Encodes a timestamptz parameter or column as microseconds since 2000-01-01. */
export function timestamp(text: string): Buffer {
  return int64(BigInt(Date.parse(text) - Date.UTC(2000, 0, 1)) * 1000n);
}

function message(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type, "latin1"), int32(body.length + 4), body]);
}

function field(bytes: Buffer): Buffer {
  return Buffer.concat([int32(bytes.length), bytes]);
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
