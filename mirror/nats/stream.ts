/**
 * The NATS stream that mirrors a log. A message is an event, byte for byte; its headers name the
 * event and the message before it, so that the server stores it only after that one:
 *
 *     Nats-Msg-Id: <event id>
 *     Nats-Expected-Last-Msg-Id: <id of the event before>
 *     Ground-After: <id of the event before, or start>   instead, in the first message of a
 *                                                        session, and in an atomic batch
 *     Ground-Batch: end                                  on the last event of a batch
 *
 * If the event before is not that of the message before, the messages between belong to a batch
 * that was lost with its log.
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
import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import { operationalError } from "../../src/commands/exit.ts";
import { connect } from "./connection.ts";

export const MESSAGE_ID = "Nats-Msg-Id";
export const EXPECTED_LAST_MESSAGE_ID = "Nats-Expected-Last-Msg-Id";
export const EXPECTED_LAST_SEQUENCE = "Nats-Expected-Last-Sequence";
/** An atomic batch: its messages are stored together or not at all. */
export const ATOMIC_ID = "Nats-Batch-Id";
export const ATOMIC_SEQUENCE = "Nats-Batch-Sequence";
export const ATOMIC_COMMIT = "Nats-Batch-Commit";
export const BATCH = "Ground-Batch";
export const BATCH_END = "end";
export const AFTER = "Ground-After";
/** Stands for the position before the first event. */
export const START = "start";

/**
 * Nanoseconds for which the server remembers message ids. The expected last id already refuses a
 * repeated message; the default of two minutes would keep millions of ids in memory.
 */
const DUPLICATE_WINDOW_NS = 1e9;

const API_LEVEL_OF_ATOMIC_BATCHES = 2;

/** Names a stream. */
export interface StreamOptions {
  /** `nats://[user:password@]host[:port]`, several separated by commas. */
  servers: string;
  /** Name of the stream, and first token of its subjects. */
  stream: string;
}

/** The headers of a message, as far as the mirror reads them. */
export interface MessageFacts {
  eventId: string;
  /** The event before it in the log; null for the first one. */
  previousId: string | null;
  endsBatch: boolean;
}

/** Reads the headers of a message; null if it is no event. */
export function messageFacts(headers: MsgHdrs | undefined): MessageFacts | null {
  const eventId = headers?.get(MESSAGE_ID) ?? "";
  const named = headers?.get(AFTER) || headers?.get(EXPECTED_LAST_MESSAGE_ID) || "";
  if (headers === undefined || eventId === "" || named === "") return null;
  const previousId = named === START ? null : named;
  const endsBatch = headers.get(BATCH) === BATCH_END;
  return { eventId, previousId, endsBatch };
}

/** A stream over one connection. */
export class MirrorStream {
  readonly connection: NatsConnection;
  readonly manager: JetStreamManager;
  readonly name: string;
  /** Whether it accepts atomic batches. */
  readonly isAtomic: boolean;

  constructor(connection: NatsConnection, manager: JetStreamManager, config: StreamConfig) {
    this.connection = connection;
    this.manager = manager;
    this.name = config.name;
    this.isAtomic = config.allow_atomic === true;
  }

  info(): Promise<StreamInfo> {
    return this.manager.streams.info(this.name);
  }

  /** The message with this sequence; null if it expired or was removed. */
  message(seq: number): Promise<StoredMsg | null> {
    return this.manager.streams.getMessage(this.name, { seq });
  }

  /** The event of a message. @throws {CommandError} something else publishes to the stream. */
  factsOf({ seq, header }: Pick<StoredMsg, "seq" | "header">): MessageFacts {
    const facts = messageFacts(header);
    if (facts !== null) return facts;
    throw operationalError(
      `message ${seq} of stream ${this.name} is not from a mirror: something else publishes ` +
        "there; give the mirror its own stream",
    );
  }

  close(): Promise<void> {
    return this.connection.close();
  }
}

/**
 * Connects to an existing stream.
 * @param isCreated whether to create it if it does not exist.
 * @throws {CommandError} the stream does not exist or does not suit.
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
    if (!isNotFound(error)) throw error;
  }
  if (!isCreated) throw operationalError(`there is no stream ${name}; name one with --stream`);
  const [retention, storage] = [RetentionPolicy.Limits, StorageType.File];
  const subjects = [subjectsOf(name)];
  const duplicate_window = DUPLICATE_WINDOW_NS;
  return await streams.add({
    ...{ name, subjects, retention, storage, duplicate_window },
    ...await hasAtomicBatches(manager) && { allow_atomic: true },
  });
}

/** Whether a server has NATS 2.12 or later. */
export async function hasAtomicBatches(manager: JetStreamManager): Promise<boolean> {
  return ((await manager.getAccountInfo()).api.level ?? 0) >= API_LEVEL_OF_ATOMIC_BATCHES;
}

function isNotFound(error: unknown): boolean {
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;
}

function subjectsOf(stream: string): string {
  return `${stream}.*.*`;
}

/** An existing stream is used unchanged, if possible. */
function checkConfig({ name, subjects = [], retention }: StreamConfig): void {
  if (!subjects.includes(subjectsOf(name)) && !subjects.includes(`${name}.>`)) {
    throw operationalError(
      `stream ${name} has the subjects ${subjects.join(", ")}: add ${
        subjectsOf(name)
      } to its subjects`,
    );
  }
  if (retention !== RetentionPolicy.Limits) {
    throw operationalError(
      `stream ${name} has ${retention} retention, which removes the last message: ` +
        "use a stream with limits retention, and feed a work queue from it",
    );
  }
}
