/**
 * The stream and the bucket in NATS that a bridge writes to, over one connection that is not made
 * again when it is lost.
 *
 * Where to go on is what the last message of the stream says: it is right whatever was lost of the
 * bridge, and also when NATS itself lost the end of the stream. The cursor in the bucket lags
 * behind; it counts when that last message is gone because it was too old or was purged.
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
/** A server that answers no ping for twice as long is gone. */
const PING_INTERVAL_MS = 10_000;
/** Header of a message that holds the event's id. */
const MESSAGE_ID_HEADER = "Nats-Msg-Id";

/** What NATS is asked to be. */
export interface TargetOptions {
  /** `nats://[user:password@]host[:port]`, several separated by commas. */
  servers: string;
  /** Name of the stream, first token of its subjects, and key of the cursor. */
  stream: string;
  bucket: string;
}

/** A place in the stream and the event that is there. */
export interface StreamPosition {
  /** Null before the first event. */
  eventId: string | null;
  /** Sequence of the message; 0 before the first. */
  sequence: number;
}

/** Connects; makes the stream and the bucket if they are not there. */
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

  /** Where the stream ends. */
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
      `message ${sequence}, the last one of stream ${this.stream}, has no ${MESSAGE_ID_HEADER}: ` +
        "something else publishes there; give the bridge a stream of its own",
    );
  }

  /** Keeps where the stream ends, for when its last message will be gone, and for people. */
  async saveCursor(position: StreamPosition): Promise<void> {
    const { eventId: event_id, sequence } = position;
    await this.#cursors.put(this.stream, JSON.stringify({ event_id, sequence }));
  }

  async #cursorAt(sequence: number): Promise<StreamPosition> {
    const text = (await this.#cursors.get(this.stream))?.string() ?? "null";
    const cursor: { event_id: string; sequence: number } | null = JSON.parse(text);
    if (cursor?.sequence === sequence) return { eventId: cursor.event_id, sequence };
    throw new BridgeError(
      `message ${sequence}, the last one of stream ${this.stream}, is gone, and the cursor is ` +
        `${text}: nobody knows which event that was; put ` +
        `{"event_id":"<last event in the stream>","sequence":${sequence}} into the bucket`,
    );
  }
}

/** Of the stream as it is, or as it is made. */
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

/** A stream that was there before is used as it is, if it can be. */
function checkConfig({ name, subjects = [], retention }: StreamConfig): void {
  if (!subjects.includes(subjectsOf(name)) && !subjects.includes(`${name}.>`)) {
    throw new BridgeError(
      `stream ${name} takes ${subjects.join(", ")}: add ${subjectsOf(name)} to its subjects`,
    );
  }
  if (retention !== RetentionPolicy.Limits) {
    throw new BridgeError(
      `stream ${name} has ${retention} retention, which removes what tells where it ends: ` +
        "use one with limits retention, and let a work queue take from that",
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
