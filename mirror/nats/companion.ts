/**
 * The companion of a stream, `<stream>-mirror`. It keeps one message per subject:
 *
 *     <stream>-mirror.end                   {"event_id": <the last event read by the pusher>, "at"}
 *     <stream>-mirror.part.<uuid>.<number>  a part of an event that exceeds the server's limit
 *
 * For the parts, see `parts.ts`.
 */
import type { StoredMsg, StreamInfo } from "@nats-io/jetstream";
import { isStreamNotFound, type MirrorStream } from "./stream.ts";

/** What a pusher said about the log. */
export interface SaidEnd {
  event_id: string;
  /** When, in RFC 3339. */
  at: string;
}

export function companionOf(stream: string): string {
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

/** Returns the last message with a subject in the companion; null if there is none. */
export async function lastMessage({ manager, name }: MirrorStream, token: string) {
  const companion = companionOf(name);
  const query = { last_by_subj: `${companion}.${token}` };
  return await manager.streams.getMessage(companion, query).catch((error): StoredMsg | null => {
    if (isStreamNotFound(error)) return null;
    throw error;
  });
}
