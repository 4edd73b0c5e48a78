/** Reads the stream and the bucket that `nats_bridge` fills. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { JetStreamApiCodes, type JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import type { Bridged } from "./nats_bridge.ts";
import type { NatsServer } from "./nats_server.ts";
import type { Spawned } from "../../../tools/support/program.ts";
import type { Deployment } from "../../support/deployment.ts";

export const STREAM = "ground";
const POLL_MS = 5;

export interface Message {
  subject: string;
  /** Id of the event, from the header. */
  id: string;
  data: string;
}

/** Sequence of the last message; 0 while there is no stream. */
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
 * Waits until the bridge has copied this many events into the stream.
 * @throws {Error} the bridge exited before.
 */
export async function untilSequence(
  server: NatsServer,
  sequence: number,
  { exited, output }: Spawned,
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

/** All messages of a complete stream. */
export async function readStream(server: NatsServer): Promise<Message[]> {
  const { streams } = await jetstreamManager(await server.connect());
  const { state } = await streams.info(STREAM);
  assert.equal(state.messages, state.last_seq);
  const sequences = Array.from({ length: state.last_seq }, (_, index) => index + 1);
  return await Promise.all(sequences.map(async (seq) => {
    const message = await streams.getMessage(STREAM, { seq });
    const { subject, header } = message!;
    return { subject, id: header.get("Nats-Msg-Id"), data: message!.string() };
  }));
}

export interface Cursor {
  event_id: string;
  sequence: number;
}

async function cursors(server: NatsServer): Promise<KV> {
  return await new Kvm(await server.connect()).open("cursors");
}

export async function readCursor(server: NatsServer): Promise<Cursor> {
  return (await (await cursors(server)).get(STREAM))!.json();
}

export async function writeCursor(server: NatsServer, cursor: Cursor): Promise<void> {
  await (await cursors(server)).put(STREAM, JSON.stringify(cursor));
}

/** The events of a log that was never sealed, byte for byte. */
export async function readLines({ logDir }: Deployment): Promise<string[]> {
  const tail = join(logDir, "tail.ndjson");
  const lines = (await readFile(tail, "utf8")).split("\n");
  return lines.filter((line) => line.startsWith('{"event_id":'));
}

/** Asserts that the stream has each event of the log once, in order, byte for byte. */
export async function assertMirrors({ served, nats }: Bridged): Promise<void> {
  const lines = await readLines(served);
  const messages = await readStream(nats);
  assert.deepEqual(messages.map(({ data }) => data), lines);
  assert.deepEqual(messages.map(({ id }) => id), lines.map((line) => JSON.parse(line).event_id));
}
