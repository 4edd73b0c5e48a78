/**
 * The NATS stream that mirrors a log. Each message body is an event, byte for byte, unless it is
 * larger than the server accepts: then its companion stream holds the parts. The headers
 * name the event and its predecessor, so that the server stores messages only in log order:
 *
 *     Nats-Msg-Id: <event id>
 *     Nats-Expected-Last-Msg-Id: <id of the preceding event>
 *     Ground-After: <id of the preceding event, or start>   instead, in the first message of a
 *                                                           session and in atomic batches
 *     Ground-Batch: end                                     on the last event in a batch
 *     Ground-Parts: <uuid> <parts> <bytes>                  instead of a body (`parts.ts`)
 *
 * If a message names a predecessor other than the event in the preceding message, the messages
 * between that predecessor and this message belong to a batch that was lost with its log.
 */
import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StoredMsg,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { operationalError } from "../../src/commands/exit.ts";
import { connect } from "./connection.ts";

export const MESSAGE_ID = "Nats-Msg-Id";
export const EXPECTED_LAST_MESSAGE_ID = "Nats-Expected-Last-Msg-Id";
export const EXPECTED_LAST_SEQUENCE = "Nats-Expected-Last-Sequence";
/** Headers for a NATS atomic batch, whose messages are stored together or not at all. */
export const ATOMIC_ID = "Nats-Batch-Id";
export const ATOMIC_SEQUENCE = "Nats-Batch-Sequence";
export const ATOMIC_COMMIT = "Nats-Batch-Commit";
export const BATCH = "Ground-Batch";
export const BATCH_END = "end";
export const AFTER = "Ground-After";
/** Value of `Ground-After` on the first event in a log. */
export const START = "start";

/**
 * How long the server remembers message ids, in nanoseconds. `Nats-Expected-Last-Msg-Id` already
 * prevents duplicates, and the default of two minutes would keep millions of ids in memory.
 */
const DUPLICATE_WINDOW_NS = 1e9;

const API_LEVEL_OF_ATOMIC_BATCHES = 2;
/** This version rejects atomic batches with a `Nats-Msg-Id` header; 2.12.1 accepts them. */
const UNSUITABLE_VERSION = "2.12.0";

/** A NATS stream and its servers. */
export interface StreamOptions {
  /** `nats://[user:password@]host[:port]`, or a comma-separated list. */
  servers: string;
  /** Stream name, which is also the first token of its subjects. */
  stream: string;
}

/** Metadata for an event, from its message's headers. */
export interface MessageFacts {
  eventId: string;
  /** The preceding event in the log; null for the first event. */
  previousId: string | null;
  endsBatch: boolean;
}

const messageIdIn = headerReader(MESSAGE_ID);
const afterIn = headerReader(AFTER);
const expectedLastIn = headerReader(EXPECTED_LAST_MESSAGE_ID);
const batchIn = headerReader(BATCH);

/** Parses encoded headers. Returns null if the message was not published by a mirror. */
export function messageFacts(headers: string): MessageFacts | null {
  const eventId = messageIdIn(headers);
  const named = afterIn(headers) || expectedLastIn(headers);
  if (eventId === "" || named === "") return null;
  const previousId = named === START ? null : named;
  return { eventId, previousId, endsBatch: batchIn(headers) === BATCH_END };
}

/** Returns a function that returns the value of a header; empty if there is none. */
function headerReader(name: string): (headers: string) => string {
  const field = `\r\n${name}: `;
  return (headers) => {
    const at = headers.indexOf(field);
    if (at < 0) return "";
    const start = at + field.length;
    return headers.slice(start, headers.indexOf("\r\n", start));
  };
}

/** Creates the error for a message that was not published by a mirror. */
export function foreignMessage(stream: string, seq: number): Error {
  return operationalError(
    `message ${seq} in stream ${stream} is not from a mirror: another publisher ` +
      "writes to the stream; use a dedicated stream for the mirror",
  );
}

/** The stream does not exist, or ends before the log's last event. A pusher may change that. */
export class StreamNotReadyError extends Error {
  override name = "StreamNotReadyError";
}

/** A stream, accessed over one connection. */
export class MirrorStream {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly name: string;
  /** Whether to publish atomic batches: the stream accepts them, and has replicas. */
  readonly isAtomic: boolean;

  constructor(connection: NatsConnection, manager: JetStreamManager, config: StreamConfig) {
    this.connection = connection;
    this.manager = manager;
    this.name = config.name;
    const { version } = connection.info ?? {};
    // A single server stores single messages faster.
    const isReplicated = config.num_replicas > 1;
    this.isAtomic = config.allow_atomic === true && isReplicated && version !== UNSUITABLE_VERSION;
  }

  info(): Promise<StreamInfo> {
    return this.manager.streams.info(this.name);
  }

  /** Returns the message with this sequence, or null if it has expired or was deleted. */
  message(seq: number): Promise<StoredMsg | null> {
    return this.manager.streams.getMessage(this.name, { seq });
  }

  /** Parses a message's headers. @throws {CommandError} if a mirror did not publish the message. */
  factsOf({ seq, header }: Pick<StoredMsg, "seq" | "header">): MessageFacts {
    const facts = messageFacts(header.toString());
    if (facts === null) throw foreignMessage(this.name, seq);
    return facts;
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}

/**
 * Connects to a stream.
 * @param isCreated whether to create the stream if it does not exist.
 * @throws {StreamNotReadyError} if the stream does not exist and is not created.
 * @throws {CommandError} if the stream's configuration is unsuitable.
 */
export async function openStream(
  { servers, stream }: StreamOptions,
  { isCreated }: { isCreated: boolean },
): Promise<MirrorStream> {
  const connection = await connect(servers);
  try {
    const manager = await jetstreamManager(connection);
    const { config } = await streamInfo(manager, stream, isCreated);
    checkConfig(config);
    return new MirrorStream(connection, manager, config);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function streamInfo(
  manager: JetStreamManager,
  name: string,
  isCreated: boolean,
): Promise<StreamInfo> {
  const { streams } = manager;
  try {
    return await streams.info(name);
  } catch (error) {
    if (!isStreamNotFound(error)) throw error;
  }
  if (!isCreated) {
    throw new StreamNotReadyError(`stream ${name} does not exist; run push first, or set --stream`);
  }
  const [retention, storage] = [RetentionPolicy.Limits, StorageType.File];
  const subjects = [subjectsOf(name)];
  const duplicate_window = DUPLICATE_WINDOW_NS;
  return await streams.add({
    ...{ name, subjects, retention, storage, duplicate_window },
    ...await hasAtomicBatches(manager) && { allow_atomic: true },
  });
}

/** Whether the server supports atomic batches (NATS 2.12 or later). */
export async function hasAtomicBatches(manager: JetStreamManager): Promise<boolean> {
  return ((await manager.getAccountInfo()).api.level ?? 0) >= API_LEVEL_OF_ATOMIC_BATCHES;
}

export function isStreamNotFound(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}

function subjectsOf(stream: string): string {
  return `${stream}.*.*`;
}

/** @throws {CommandError} if a stream's subjects or retention policy are unsuitable. */
function checkConfig({ name, subjects = [], retention }: StreamConfig): void {
  if (!subjects.includes(subjectsOf(name)) && !subjects.includes(`${name}.>`)) {
    throw operationalError(
      `stream ${name} has the subjects ${subjects.join(", ")}: add ${subjectsOf(name)} to them`,
    );
  }
  if (retention !== RetentionPolicy.Limits) {
    throw operationalError(
      `stream ${name} has ${retention} retention, which deletes consumed messages: ` +
        "use limits retention; for a work queue, create a second stream that sources this one",
    );
  }
}
