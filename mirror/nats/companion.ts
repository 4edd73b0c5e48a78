/**
 * The companion of a stream, `<stream>-mirror`. It keeps one message per subject:
 *
 *     <stream>-mirror.end                   {"event_id": <the last event read by the pusher>, "at"}
 *     <stream>-mirror.part.<uuid>.<number>  a part of an event that exceeds the server's limit
 *
 * The message of such an event has no body, and the header `Ground-Parts: <uuid> <parts> <bytes>`.
 */
import { Buffer } from "node:buffer";
import { jetstream, type StoredMsg, type StreamInfo } from "@nats-io/jetstream";
import { operationalError } from "../../src/commands/exit.ts";
import { CLIENT_LINE_BYTES_MAX } from "../../src/limits.ts";
import { isStreamNotFound, type MirrorStream } from "./stream.ts";

export const PARTS = "Ground-Parts";
const PARTS_VALUE = /^([0-9a-f-]{36}) (\d{1,6}) (\d{1,12})$/;

/** What a pusher said about the log. */
export interface SaidEnd {
  event_id: string;
  /** When, in RFC 3339. */
  at: string;
}

function companionOf(stream: string): string {
  return `${stream}-mirror`;
}

/** Creates the companion, with the replicas and retention of its stream, if it does not exist. */
export async function createCompanion({ manager, name }: MirrorStream): Promise<void> {
  const { streams } = manager;
  const companion = companionOf(name);
  try {
    await streams.info(companion);
  } catch (error) {
    if (!isStreamNotFound(error)) throw error;
    const { storage, num_replicas, max_age }: StreamInfo["config"] =
      (await streams.info(name)).config;
    const subjects = [`${companion}.>`];
    const kept = { storage, num_replicas, max_age, max_msgs_per_subject: 1 };
    await streams.add({ name: companion, subjects, ...kept });
  }
}

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

/** Records how far the pusher has read the log. The message is not acknowledged. */
export function sayEnd({ connection, name }: MirrorStream, eventId: string): void {
  if (connection.isClosed()) return;
  const said: SaidEnd = { event_id: eventId, at: new Date().toISOString() };
  connection.publish(`${companionOf(name)}.end`, JSON.stringify(said));
}

/** Returns how far a pusher has read the log; null if none has said it. */
export async function saidEnd(stream: MirrorStream): Promise<SaidEnd | null> {
  return await lastMessage(stream, "end").then((message) => message?.json<SaidEnd>() ?? null);
}

async function lastMessage({ manager, name }: MirrorStream, token: string) {
  const companion = companionOf(name);
  const query = { last_by_subj: `${companion}.${token}` };
  return await manager.streams.getMessage(companion, query).catch((error): StoredMsg | null => {
    if (isStreamNotFound(error)) return null;
    throw error;
  });
}
