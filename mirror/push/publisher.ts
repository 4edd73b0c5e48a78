/**
 * Publishes events in order and without gaps, with many messages in flight.
 *
 * Each message names its predecessor's id, and the server rejects it if the predecessor is not the
 * stream's last message. A stored message therefore proves that all earlier ones are stored, so
 * only some messages need to request an acknowledgement. Late messages from an abandoned connection
 * are rejected. The first message of a session names the stream's last sequence instead of an id.
 *
 * If a replicated stream accepts atomic batches, events are published in such batches, one at a
 * time, because replicated servers store them faster. A batch's first message names the last
 * sequence.
 */
import { type Msg, type MsgHdrs, MsgHdrsImpl } from "@nats-io/transport-node";
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
import { PARTS, storeParts } from "../nats/parts.ts";
import { subjectOf } from "../nats/subject.ts";
import type { LogEvent } from "./follow.ts";
import type { StreamEnd } from "./stream_end.ts";

/** Maximum number of unacknowledged messages. */
const IN_FLIGHT_MAX = 4096;
/** Maximum total size of unacknowledged messages. A single event may be larger. */
const IN_FLIGHT_BYTES_MAX = 4 * 1024 * 1024;
/** An acknowledgement is requested after this many messages or bytes. */
const ACK_MESSAGES = 256;
const ACK_BYTES = 1024 * 1024;
/** If no acknowledgement arrives for this long, all messages in flight are considered lost. */
const ACK_TIMEOUT_MS = 5000;
/** The server's maximum number of messages in an atomic batch. */
const ATOMIC_MESSAGES_MAX = 1000;
/** Upper bound on the size of a message's headers, which count toward the server's limit. */
const HEADER_BYTES_MAX = 512;
const PART_BYTES_MAX = 512 * 1024;
const NO_BODY = new Uint8Array();

/** A message that requested an acknowledgement. */
interface Asked {
  event: LogEvent;
  /** Totals sent in this session, up to and including this message. */
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
  /** The last event that was sent. */
  #lastId: string | null;
  #sent = { messages: 0, bytes: 0 };
  /** Id of the current atomic batch, and the number of messages sent in it. */
  #atomic = { id: "", messages: 0 };
  /** Pending acknowledgement requests, oldest first. */
  #asked: Asked[] = [];
  #acknowledged = { messages: 0, bytes: 0 };
  /** The last event that is known to be stored. */
  #storedId: string | null;
  #answered = Promise.withResolvers<void>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Whether `drain()` is waiting for the server to receive all messages. */
  #isFlushing = false;

  /** @param failed aborted if a message was not stored. No message is stored after that. */
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

  /** The number of events known to be stored in this session, and the last of them. */
  get stored(): { events: number; eventId: string | null } {
    return { events: this.#acknowledged.messages, eventId: this.#storedId };
  }

  /** Whether the limits on messages in flight allow another event. */
  hasRoom({ data }: LogEvent): boolean {
    const messages = this.#sent.messages - this.#acknowledged.messages;
    if (this.#stream.isAtomic) return messages === 0 || this.#atomic.messages > 0;
    const bytes = this.#sent.bytes - this.#acknowledged.bytes;
    return messages === 0 || messages < IN_FLIGHT_MAX && bytes + data.length <= IN_FLIGHT_BYTES_MAX;
  }

  /**
   * Sends an event. The outcome is visible in `stored` or `failed`. Messages that are published in
   * one turn of the event loop are sent together, which takes half the CPU time.
   * @param isLast whether no other event is ready to be sent.
   * @param parts the result of `storeParts()` for an event that exceeds the server's limit.
   */
  publish(event: LogEvent, endsBatch: boolean, isLast: boolean, parts?: string): void {
    this.#sent.messages += 1;
    this.#sent.bytes += event.data.length;
    const { connection, name } = this.#stream;
    const isAsked = isLast || this.#isAckDue();
    const headers = this.#headersOf(event, endsBatch, isAsked);
    if (parts !== undefined) headers.set(PARTS, parts);
    const options = isAsked ? { headers, reply: this.#ask(event) } : { headers };
    connection.publish(subjectOf(name, event), parts === undefined ? event.data : NO_BODY, options);
    this.#lastId = event.eventId;
  }

  /** Waits until all messages are sent and all requested acknowledgements have arrived. */
  async drain(): Promise<void> {
    this.#isFlushing = true;
    if (this.#asked.length === 0) this.#startTimer();
    // If the connection closes first, this never settles, but `failed` is aborted.
    this.#stream.connection.flush().then(() => {
      this.#isFlushing = false;
      if (this.#asked.length === 0) clearTimeout(this.#timer);
      this.#wake();
    }, (error) => this.#failed.abort(error));
    while (this.#isFlushing || this.#asked.length > 0) await this.progress();
  }

  /** Waits for an acknowledgement. @throws the abort reason of `failed`. */
  async progress(): Promise<void> {
    this.#failed.signal.throwIfAborted();
    await this.#answered.promise;
    this.#failed.signal.throwIfAborted();
  }

  /** Whether an event exceeds the server's message size limit. */
  isTooLarge({ data }: LogEvent): boolean {
    return data.length + HEADER_BYTES_MAX > this.limitBytes;
  }

  /** Stores an event that exceeds the server's limit in the companion stream. */
  storeParts({ data }: LogEvent): Promise<string> {
    return storeParts(this.#stream, data, Math.min(PART_BYTES_MAX, this.limitBytes / 2));
  }

  /** The server's limit on the size of a message. */
  get limitBytes(): number {
    return this.#stream.connection.info?.max_payload ?? Infinity;
  }

  /** Always true for the first message, so that a permanent error is reported early. */
  #isAckDue(): boolean {
    const { messages, bytes } = this.#asked.at(-1) ?? this.#acknowledged;
    const isEnough = this.#stream.isAtomic
      ? this.#atomic.messages === ATOMIC_MESSAGES_MAX - 1
      : this.#sent.messages - messages >= ACK_MESSAGES;
    return isEnough || this.#sent.messages === 1 || this.#sent.bytes - bytes >= ACK_BYTES;
  }

  /** Registers an acknowledgement request. Returns the subject for the server's reply. */
  #ask(event: LogEvent): string {
    if (this.#asked.length === 0) this.#startTimer();
    this.#asked.push({ event, ...this.#sent });
    return `${this.#inbox}.${this.#sent.messages}`;
  }

  #headersOf(event: LogEvent, endsBatch: boolean, isAsked: boolean): MsgHdrs {
    const named: Record<string, string[]> = { [MESSAGE_ID]: [event.eventId] };
    if (endsBatch) named[BATCH] = [BATCH_END];
    const { isAtomic } = this.#stream;
    if (isAtomic ? this.#atomic.messages === 0 : this.#sent.messages === 1) {
      // A restarted server does not know the id of the stream's last message, so name its sequence.
      named[EXPECTED_LAST_SEQUENCE] = [`${this.#start.sequence + this.#sent.messages - 1}`];
    }
    if (isAtomic) this.#addToBatch(named, isAsked);
    if (isAtomic || this.#sent.messages === 1) named[AFTER] = [this.#lastId ?? START];
    else if (this.#lastId !== null) named[EXPECTED_LAST_MESSAGE_ID] = [this.#lastId];
    return MsgHdrsImpl.fromRecord(named);
  }

  #addToBatch(named: Record<string, string[]>, isLast: boolean): void {
    if (this.#atomic.messages === 0) this.#atomic.id = crypto.randomUUID();
    this.#atomic.messages += 1;
    named[ATOMIC_ID] = [this.#atomic.id];
    named[ATOMIC_SEQUENCE] = [`${this.#atomic.messages}`];
    if (!isLast) return;
    named[ATOMIC_COMMIT] = ["1"];
    this.#atomic.messages = 0;
  }

  #take(error: Error | null, message: Msg): void {
    const messages = Number(message.subject.slice(this.#inbox.length + 1));
    const asked = this.#asked.find((known) => known.messages === messages);
    // The request was abandoned, or a later acknowledgement covered it.
    if (asked === undefined) return;
    const failure = error ?? this.#failureOf(asked, message);
    if (failure !== null) return this.#failed.abort(failure);
    clearTimeout(this.#timer);
    this.#asked = this.#asked.filter((known) => known.messages > messages);
    this.#acknowledged = { messages, bytes: asked.bytes };
    this.#storedId = asked.event.eventId;
    if (this.#asked.length > 0 || this.#isFlushing) this.#startTimer();
    this.#wake();
  }

  #failureOf({ event, messages }: Asked, message: Msg): Error | null {
    if (message.data.length === 0) return new Error("no acknowledgement: the stream has no leader");
    const { seq, error } = message.json<Acknowledgement>();
    const { eventId, source, stream } = event;
    if (error !== undefined) {
      const refused = `NATS refused event ${eventId} of ${source}/${stream}: ${error.description}`;
      const isFinal = isRefusal(error.code, error.err_code);
      return isFinal ? operationalError(refused) : new Error(refused);
    }
    const expected = this.#start.sequence + messages;
    if (seq === expected) return null;
    return new Error(`event ${eventId} was stored as message ${seq}, expected ${expected}`);
  }

  #startTimer(): void {
    const lost = new Error(`no acknowledgement from NATS within ${ACK_TIMEOUT_MS} ms`);
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
