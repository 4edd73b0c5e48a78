/**
 * The NATS stream and bucket that a bridge writes to, over one connection that is not reopened when
 * lost.
 *
 * The bridge resumes after the last message of the stream, which is correct whatever the bridge
 * lost, and also when NATS itself lost the end of the stream. The cursor in the bucket lags behind;
 * it counts when that last message has expired or was purged.
 */
import {
  jetstream,
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from "@nats-io/jetstream";
import { type KV, Kvm } from "@nats-io/kv";
import { connect, type ConnectionOptions, type NatsConnection } from "@nats-io/transport-node";
import { BridgeError } from "./nats_failures.ts";

const CONNECT_TIMEOUT_MS = 5000;
/** A server that answers no ping for twice this long counts as gone. */
const PING_INTERVAL_MS = 10_000;
/** The message header with the event's id. */
const MESSAGE_ID_HEADER = "Nats-Msg-Id";

/** Configuration of the connection to NATS. */
export interface TargetOptions {
  /** `nats://[user:password@]host[:port]`, several separated by commas. */
  servers: string;
  /** Name of the stream, first token of its subjects, and key of the cursor. */
  stream: string;
  bucket: string;
}

/** A position in the stream and its event. */
export interface StreamPosition {
  /** Null before the first event. */
  eventId: string | null;
  /** Sequence of the message; 0 before the first. */
  sequence: number;
}

/** Connects; creates the stream and the bucket if they do not exist. */
export async function openTarget({ servers, stream, bucket }: TargetOptions): Promise<NatsTarget> {
  const connection = await connect(connectionOptions(servers));
  try {
    const manager = await jetstreamManager(connection);
    const { config } = await streamInfo(manager, stream);
    checkConfig(config);
    const replicas = config.num_replicas;
    const cursors = await new Kvm(connection).create(bucket, { history: 1, replicas });
    return new NatsTarget(connection, stream, manager, cursors);
  } catch (error) {
    await connection.close();
    throw error;
  }
}

export class NatsTarget {
  readonly connection: NatsConnection;
  readonly client: JetStreamClient;
  readonly stream: string;
  readonly #manager: JetStreamManager;
  readonly #cursors: KV;

  constructor(connection: NatsConnection, stream: string, manager: JetStreamManager, cursors: KV) {
    this.connection = connection;
    this.client = jetstream(connection);
    this.stream = stream;
    this.#manager = manager;
    this.#cursors = cursors;
  }

  /** The end of the stream. */
  async position(): Promise<StreamPosition> {
    const { state } = await streamInfo(this.#manager, this.stream);
    const sequence = state.last_seq;
    // A recreated stream is filled from the start.
    if (sequence === 0) return { eventId: null, sequence };
    const last = await this.#manager.streams.getMessage(this.stream, { seq: sequence });
    if (last === null) return await this.#cursorAt(sequence);
    const eventId = last.header.get(MESSAGE_ID_HEADER);
    if (eventId !== "") return { eventId, sequence };
    throw new BridgeError(
      `message ${sequence}, the last of stream ${this.stream}, has no ${MESSAGE_ID_HEADER}: ` +
        "something else publishes there; give the bridge its own stream",
    );
  }

  /** Saves the end of the stream, for when its last message has expired, and for people. */
  async saveCursor(position: StreamPosition): Promise<void> {
    const { eventId: event_id, sequence } = position;
    await this.#cursors.put(this.stream, JSON.stringify({ event_id, sequence }));
  }

  async #cursorAt(sequence: number): Promise<StreamPosition> {
    const text = (await this.#cursors.get(this.stream))?.string() ?? "null";
    const cursor: { event_id: string; sequence: number } | null = JSON.parse(text);
    if (cursor?.sequence === sequence) return { eventId: cursor.event_id, sequence };
    throw new BridgeError(
      `message ${sequence}, the last of stream ${this.stream}, is gone, and the cursor is ` +
        `${text}, so its event is unknown; put ` +
        `{"event_id":"<last event in the stream>","sequence":${sequence}} into the bucket`,
    );
  }
}

/** The configuration of the existing or newly created stream. */
async function streamInfo({ streams }: JetStreamManager, name: string): Promise<StreamInfo> {
  try {
    return await streams.info(name);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  const [retention, storage] = [RetentionPolicy.Limits, StorageType.File];
  return await streams.add({ name, subjects: [subjectsOf(name)], retention, storage });
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
    throw new BridgeError(
      `stream ${name} has the subjects ${subjects.join(", ")}: add ${
        subjectsOf(name)
      } to its subjects`,
    );
  }
  if (retention !== RetentionPolicy.Limits) {
    throw new BridgeError(
      `stream ${name} has ${retention} retention, which removes the last message: ` +
        "use a stream with limits retention, and feed a work queue from it",
    );
  }
}

function connectionOptions(servers: string): ConnectionOptions {
  const urls = servers.split(",").map((text) => new URL(text));
  const { username, password } = urls[0]!;
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
  return {
    servers: urls.map(({ protocol, host }) => `${protocol}//${host}`),
    ...(user !== "" && (pass === "" ? { token: user } : { user, pass })),
    name: "nats_bridge",
    reconnect: false,
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
  };
}
