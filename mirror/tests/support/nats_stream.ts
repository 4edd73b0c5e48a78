/** Reads the stream that `push` writes, and compares it with the log. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { JetStreamApiCodes, type JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import type { CommittedEvent } from "../../../mod.ts";
import type { Deployment } from "../../../tests/support/deployment.ts";
import type { Spawned } from "../../../tools/support/program.ts";
import { readStream as readMessages } from "../../restore/stream_reader.ts";
import { openStream } from "../../nats/stream.ts";
import type { Mirrored } from "./mirrored.ts";
import type { NatsServer } from "./nats_server.ts";

export const STREAM = "ground";
const POLL_MS = 5;

export interface Message {
  subject: string;
  /** Event id from the header. */
  id: string;
  endsBatch: boolean;
  data: string;
}

/** Returns the sequence of the last message, or 0 if the stream does not exist yet. */
export async function lastSequence(server: NatsServer): Promise<number> {
  const { streams } = await jetstreamManager(await server.connect(), { checkAPI: false });
  try {
    return (await streams.info(STREAM)).state.last_seq;
  } catch (error) {
    const { code } = error as JetStreamApiError;
    if (code === JetStreamApiCodes.StreamNotFound) return 0;
    throw error;
  }
}

/**
 * Waits until the stream's last sequence is at least `sequence`.
 * @throws {Error} if the pusher exits first.
 */
export async function untilSequence(
  server: NatsServer,
  sequence: number,
  { exited, output }: Spawned,
): Promise<void> {
  let isGone = false;
  exited.then(() => isGone = true);
  while (await lastSequence(server) < sequence) {
    if (isGone) throw new Error(`the pusher exited early: ${output.stderr}`);
    await pause();
  }
}

export function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

/** Reads all messages in a stream from which none has expired. */
export async function readStream({ url }: Pick<NatsServer, "url">): Promise<Message[]> {
  const stream = await openStream({ servers: url, stream: STREAM }, { isCreated: false });
  try {
    const { state } = await stream.info();
    assert.equal(state.messages, state.last_seq);
    const found: Message[] = [];
    if (state.messages === 0) return found;
    const whole = { startSeq: 1, lastSeq: state.last_seq };
    for await (const messages of readMessages(stream, whole, new AbortController().signal)) {
      for (const { seq, message } of messages) {
        const { eventId: id, endsBatch } = stream.factsOf({ seq, header: message.headers! });
        found.push({ subject: message.subject, id, endsBatch, data: message.string() });
      }
      if (found.length === state.last_seq) break;
    }
    return found;
  } finally {
    await stream.close();
  }
}

/** Reads the event lines from a log that has no segments. */
async function readLines({ logDir }: Deployment): Promise<string[]> {
  const lines = (await readFile(join(logDir, "tail.ndjson"), "utf8")).split("\n");
  return lines.filter((line) => line.startsWith('{"event_id":'));
}

/** Asserts that the stream contains each event in the log once, in order, byte for byte. */
export async function assertMirrors({ served, nats }: Mirrored): Promise<void> {
  const lines = await readLines(served);
  const events: CommittedEvent[] = lines.map((line) => JSON.parse(line));
  const messages = await readStream(nats);
  assert.deepEqual(messages.map(({ data }) => data), lines);
  assert.deepEqual(messages.map(({ id }) => id), events.map(({ event_id }) => event_id));
  const ends = events.map(({ batch_id, source }, index) => {
    const next = events[index + 1];
    return batch_id !== next?.batch_id || source !== next.source;
  });
  assert.deepEqual(messages.map(({ endsBatch }) => endsBatch), ends);
}
