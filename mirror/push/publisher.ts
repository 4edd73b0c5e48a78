/**
 * Publishes events, many at a time, in order and without gaps.
 *
 * Each message names the id of the message before it, and the server stores it only after that one.
 * So a message is stored only if all before it are: only every so many asks for an acknowledgement.
 * A message that arrives late, from an abandoned connection, is refused. The first message names
 * the sequence of the last message instead, whose event has been looked up in the log.
 *
 * A stream that accepts atomic batches gets them, one after the other: servers with replicas store
 * them faster. The first message of each names the sequence, which its predecessor has made known.
 */
import { headers, type Msg, type MsgHdrs } from "@nats-io/transport-node";
import { operationalError } from "../../src/commands/exit.ts";
import { isRefusal } from "../failures.ts";
import {
  AFTER,
  ATOMIC_COMMIT,
  ATOMIC_ID,
  ATOMIC_SEQUENCE,
  BATCH,
  BATCH_END,
  EXPECTED_LAST_MESSAGE_ID,
  EXPECTED_LAST_SEQUENCE,
  MESSAGE_ID,
  type MirrorStream,
  START,
} from "../nats/stream.ts";
import { subjectOf } from "../nats/subject.ts";
import type { LogEvent } from "./follow.ts";
import type { StreamEnd } from "./stream_end.ts";

/** Most messages that may be lost with the connection. */
const IN_FLIGHT_MAX = 4096;
/** Their total size; a single event may be larger. */
const IN_FLIGHT_BYTES_MAX = 4 * 1024 * 1024;
/** Messages and bytes after which an acknowledgement is requested. */
const ACK_MESSAGES = 256;
const ACK_BYTES = 1024 * 1024;
/** Without an acknowledgement for this long, all messages in flight count as lost. */
const ACK_TIMEOUT_MS = 5000;
/** The server's limit on the messages of an atomic batch. */
const ATOMIC_MESSAGES_MAX = 1000;
/** Generous estimate of a message's headers, which count towards the server's limit. */
const HEADER_BYTES_MAX = 512;

/** A message that asked for an acknowledgement. */
interface Asked {
  event: LogEvent;
  /** Messages and bytes that had been sent with it. */
  messages: number;
  bytes: number;
}

interface Acknowledgement {
  seq: number;
  error?: { code: number; err_code: number; description: string };
}

export class Publisher {
  readonly #stream: MirrorStream;
  readonly #start: StreamEnd;
  readonly #failed: AbortController;
  readonly #inbox: string;
  /** The event before the next one. */
  #lastId: string | null;
  #sent = { messages: 0, bytes: 0 };
  /** Messages of the current atomic batch, which all name its id. */
  #atomic = { id: "", messages: 0 };
  /** From oldest to newest. */
  #asked: Asked[] = [];
  #acknowledged = { messages: 0, bytes: 0 };
  /** The last event that is known to be stored. */
  #storedId: string | null;
  #answered = Promise.withResolvers<void>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param failed aborted when a message was not stored; later ones are not either. */
  constructor(stream: MirrorStream, start: StreamEnd, failed: AbortController) {
    this.#stream = stream;
    this.#start = start;
    this.#failed = failed;
    failed.signal.addEventListener("abort", () => this.#end());
    this.#lastId = this.#storedId = start.resumeAfter;
    this.#inbox = `_INBOX.mirror.${crypto.randomUUID()}`;
    stream.connection.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => this.#take(error, message),
    });
  }

  /** Events known to be stored since the start, and the last of them. */
  get stored(): { events: number; eventId: string | null } {
    return { events: this.#acknowledged.messages, eventId: this.#storedId };
  }

  /**
   * Sends an event once there is capacity. `stored` and `failed` report its outcome.
   * @param isLast whether nothing more is waiting to be sent.
   * @throws {CommandError} it exceeds the server's limit.
   * @throws the reason of a failure.
   */
  async publish(event: LogEvent, endsBatch: boolean, isLast: boolean): Promise<void> {
    const sizeBytes = event.data.length;
    if (this.isTooLarge(event)) throw tooLarge(event, this.#limitBytes);
    while (!this.#hasRoom(sizeBytes)) await this.#progress();
    this.#sent = { messages: this.#sent.messages + 1, bytes: this.#sent.bytes + sizeBytes };
    const { connection, name } = this.#stream;
    const isAsked = isLast || this.#isAckDue();
    const options = { headers: this.#headersOf(event, endsBatch, isAsked) };
    const reply = isAsked ? this.#ask(event) : undefined;
    connection.publish(subjectOf(name, event), event.data, reply ? { ...options, reply } : options);
    this.#lastId = event.eventId;
  }

  /** Waits until every message has been sent, and acknowledged if it asked for it. */
  async drain(): Promise<void> {
    await this.#stream.connection.flush();
    while (this.#asked.length > 0) await this.#progress();
  }

  /** Waits for an acknowledgement. @throws the reason of the signal. */
  async #progress(): Promise<void> {
    this.#failed.signal.throwIfAborted();
    await this.#answered.promise;
    this.#failed.signal.throwIfAborted();
  }

  /** Whether the server would not accept an event. */
  isTooLarge({ data }: LogEvent): boolean {
    return data.length + HEADER_BYTES_MAX > this.#limitBytes;
  }

  get #limitBytes(): number {
    return this.#stream.connection.info?.max_payload ?? Infinity;
  }

  #hasRoom(sizeBytes: number): boolean {
    const messages = this.#sent.messages - this.#acknowledged.messages;
    if (this.#stream.isAtomic) return messages === 0 || this.#atomic.messages > 0;
    const bytes = this.#sent.bytes - this.#acknowledged.bytes;
    return messages === 0 || messages < IN_FLIGHT_MAX && bytes + sizeBytes <= IN_FLIGHT_BYTES_MAX;
  }

  /** The first message asks too: if the server refuses it for good, it says why. */
  #isAckDue(): boolean {
    const before = this.#asked.at(-1) ?? this.#acknowledged;
    if (this.#stream.isAtomic) {
      return this.#sent.messages === 1 || this.#atomic.messages === ATOMIC_MESSAGES_MAX - 1 ||
        this.#sent.bytes - before.bytes >= ACK_BYTES;
    }
    return this.#sent.messages === 1 ||
      this.#sent.messages - before.messages >= ACK_MESSAGES ||
      this.#sent.bytes - before.bytes >= ACK_BYTES;
  }

  /** Returns the subject to which the server replies once this message is stored. */
  #ask(event: LogEvent): string {
    if (this.#asked.length === 0) this.#startTimer();
    this.#asked.push({ event, ...this.#sent });
    return `${this.#inbox}.${this.#sent.messages}`;
  }

  #headersOf(event: LogEvent, endsBatch: boolean, isAsked: boolean) {
    const described = headers();
    described.append(MESSAGE_ID, event.eventId);
    if (endsBatch) described.append(BATCH, BATCH_END);
    const { isAtomic } = this.#stream;
    if (isAtomic ? this.#atomic.messages === 0 : this.#sent.messages === 1) {
      // A restarted server does not know the id of its last message.
      const lastSequence = this.#start.sequence + this.#sent.messages - 1;
      described.append(EXPECTED_LAST_SEQUENCE, `${lastSequence}`);
    }
    if (isAtomic) this.#addToBatch(described, isAsked);
    if (isAtomic || this.#sent.messages === 1) described.append(AFTER, this.#lastId ?? START);
    else if (this.#lastId !== null) described.append(EXPECTED_LAST_MESSAGE_ID, this.#lastId);
    return described;
  }

  #addToBatch(described: MsgHdrs, isLast: boolean): void {
    if (this.#atomic.messages === 0) this.#atomic.id = crypto.randomUUID();
    this.#atomic.messages += 1;
    described.append(ATOMIC_ID, this.#atomic.id);
    described.append(ATOMIC_SEQUENCE, `${this.#atomic.messages}`);
    if (!isLast) return;
    described.append(ATOMIC_COMMIT, "1");
    this.#atomic.messages = 0;
  }

  #take(error: Error | null, message: Msg): void {
    const messages = Number(message.subject.slice(this.#inbox.length + 1));
    const asked = this.#asked.find((known) => known.messages === messages);
    // Abandoned, or acknowledged with a later one.
    if (asked === undefined) return;
    const failure = error ?? this.#failureOf(asked, message);
    if (failure !== null) return this.#failed.abort(failure);
    clearTimeout(this.#timer);
    this.#asked = this.#asked.filter((known) => known.messages > messages);
    this.#acknowledged = { messages, bytes: asked.bytes };
    this.#storedId = asked.event.eventId;
    if (this.#asked.length > 0) this.#startTimer();
    this.#wake();
  }

  #failureOf({ event, messages }: Asked, message: Msg): Error | null {
    if (message.data.length === 0) return new Error("the stream has no leader");
    const { seq, error } = message.json<Acknowledgement>();
    const { eventId, source, stream } = event;
    if (error !== undefined) {
      const refused = `NATS refused event ${eventId} of ${source}/${stream}: ${error.description}`;
      const isFinal = isRefusal(error.code, error.err_code);
      return isFinal ? operationalError(refused) : new Error(refused);
    }
    const expected = this.#start.sequence + messages;
    if (seq === expected) return null;
    return new Error(`event ${eventId} became message ${seq}, not ${expected}`);
  }

  #startTimer(): void {
    const lost = new Error(`no acknowledgement in ${ACK_TIMEOUT_MS} ms`);
    this.#timer = setTimeout(() => this.#failed.abort(lost), ACK_TIMEOUT_MS);
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#wake();
  }

  #wake(): void {
    this.#answered.resolve();
    this.#answered = Promise.withResolvers();
  }
}

function tooLarge({ eventId, source, stream, data }: LogEvent, limitBytes: number): Error {
  return operationalError(
    `event ${eventId} of ${source}/${stream} has ${data.length} bytes, but the server accepts ` +
      `messages of ${limitBytes} with ${HEADER_BYTES_MAX} for headers: raise its max_payload; ` +
      "after a restart the mirror resumes with this event",
  );
}
