/**
 * Events that exceed the server's limit: their parts are in the companion of the stream, and their
 * message has no body, and the header `Ground-Parts: <uuid> <parts> <bytes>`.
 */
import { Buffer } from "node:buffer";
import { jetstream } from "@nats-io/jetstream";
import { operationalError } from "../../src/commands/exit.ts";
import { CLIENT_LINE_BYTES_MAX } from "../../src/limits.ts";
import { companionOf, lastMessage } from "./companion.ts";
import type { MirrorStream } from "./stream.ts";

export const PARTS = "Ground-Parts";
const PARTS_VALUE = /^([0-9a-f-]{36}) (\d{1,6}) (\d{1,12})$/;

/** Stores an event in parts. @returns the value of its message's `Ground-Parts` header. */
export async function storeParts(
  { connection, name }: MirrorStream,
  data: Uint8Array,
  partBytes: number,
): Promise<string> {
  const id = crypto.randomUUID();
  const client = jetstream(connection);
  let parts = 0;
  for (let start = 0; start < data.length; start += partBytes) {
    const part = data.subarray(start, start + partBytes);
    await client.publish(`${companionOf(name)}.part.${id}.${parts++}`, part);
  }
  return `${id} ${parts} ${data.length}`;
}

/**
 * Reads an event that is stored in parts.
 * @throws {CommandError} if the header is malformed.
 * @throws {Error} if a part is missing.
 */
export async function readParts(stream: MirrorStream, header: string): Promise<Buffer> {
  const [, id, parts = "", bytes = ""] = PARTS_VALUE.exec(header) ?? [];
  if (id === undefined || Number(bytes) > CLIENT_LINE_BYTES_MAX) {
    throw operationalError(`${PARTS}: ${header} in stream ${stream.name} is malformed`);
  }
  const read: Uint8Array[] = [];
  let readBytes = 0;
  for (let part = 0; part < Number(parts) && readBytes < Number(bytes); part++) {
    const stored = await lastMessage(stream, `part.${id}.${part}`);
    if (stored === null) throw new Error(`part ${part} of ${parts} of a message is missing`);
    read.push(stored.data);
    readBytes += stored.data.length;
  }
  if (readBytes === Number(bytes)) return Buffer.concat(read);
  throw new Error(`the ${parts} parts of a message have ${readBytes} bytes, not ${bytes}`);
}
