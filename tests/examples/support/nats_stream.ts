/** Looks into the stream and the bucket that `nats_bridge` fills. */
import assert from "node:assert/strict";
import { JetStreamApiCodes, type JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import type { Fetch } from "../../../mod.ts";
import { type NatsServer, withConnection } from "./nats_server.ts";
import type { ScriptRun } from "./run_script.ts";

export const STREAM = "ground";
const POLL_MS = 5;

export interface Message {
  subject: string;
  /** Id of the event, by the header. */
  id: string;
  data: string;
}

/** Sequence of the last message; 0 while there is no stream. */
export function lastSequence(server: NatsServer): Promise<number> {
  return withConnection(server, async (connection) => {
    const { streams } = await jetstreamManager(connection);
    try {
      return (await streams.info(STREAM)).state.last_seq;
    } catch (error) {
      const { code } = error as JetStreamApiError;
      if (code === JetStreamApiCodes.StreamNotFound) return 0;
      throw error;
    }
  });
}

/**
 * Waits until the bridge has carried so many events into the stream.
 * @throws {Error} the bridge has ended before.
 */
export async function untilSequence(
  server: NatsServer,
  sequence: number,
  { exited, output }: ScriptRun,
): Promise<void> {
  let isGone = false;
  exited.then(() => isGone = true);
  while (await lastSequence(server) < sequence) {
    if (isGone) throw new Error(`the bridge ended early: ${output.stderr}`);
    await pause();
  }
}

export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

/** All messages of a stream that has lost none. */
export function readStream(server: NatsServer): Promise<Message[]> {
  return withConnection(server, async (connection) => {
    const { streams } = await jetstreamManager(connection);
    const { state } = await streams.info(STREAM);
    assert.equal(state.messages, state.last_seq);
    const messages: Message[] = [];
    for (let seq = 1; seq <= state.last_seq; seq++) {
      const message = (await streams.getMessage(STREAM, { seq }))!;
      const { subject, header } = message;
      messages.push({ subject, id: header.get("Nats-Msg-Id"), data: message.string() });
    }
    return messages;
  });
}

export interface Cursor {
  event_id: string;
  sequence: number;
}

export function readCursor(server: NatsServer): Promise<Cursor> {
  return withConnection(server, async (connection) => {
    const bucket = await new Kvm(connection).open("cursors");
    return (await bucket.get(STREAM))!.json();
  });
}

export function writeCursor(server: NatsServer, cursor: Cursor): Promise<void> {
  return withConnection(server, async (connection) => {
    const bucket = await new Kvm(connection).open("cursors");
    await bucket.put(STREAM, JSON.stringify(cursor));
  });
}

/** The lines of a log, byte for byte as the service sends them. */
export async function readLines(fetch: Fetch): Promise<string[]> {
  const lines: string[] = [];
  for (let after = "";;) {
    const text = await (await fetch(`/v1/events?limit=1${after}`)).text();
    const page: { events: unknown[]; last_event_id: string } = JSON.parse(text);
    if (page.events.length === 0) return lines;
    const start = text.indexOf("[") + 1;
    lines.push(text.slice(start, text.lastIndexOf('],"last_event_id":"')));
    after = `&after=${page.last_event_id}`;
  }
}

/** The stream holds each event of the log once, in order, as the log has it. */
export async function assertMirrors(server: NatsServer, fetch: Fetch): Promise<void> {
  const lines = await readLines(fetch);
  const messages = await readStream(server);
  assert.deepEqual(messages.map(({ data }) => data), lines);
  assert.deepEqual(messages.map(({ id }) => id), lines.map((line) => JSON.parse(line).event_id));
}
