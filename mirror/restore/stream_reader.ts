/**
 * Reads a stream's messages in order, starting at a given sequence, over one connection.
 *
 * It creates its own consumer, and limits both the messages and the bytes in flight. The library's
 * `consume()` takes twice as much CPU time per message, and can limit only one of the two.
 */
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream";
import type { Msg } from "@nats-io/transport-node";
import type { MirrorStream } from "../nats/stream.ts";

/** Maximum messages and bytes per pull request. Two requests may overlap. */
const PULL_MESSAGES = 1024;
const PULL_BYTES = 4 * 1024 * 1024;
const PULL_EXPIRES_MS = 30_000;
const HEARTBEAT_MS = 1000;
/** How often to check that the consumer is still sending and is not stuck. */
const CHECK_INTERVAL_MS = 5 * HEARTBEAT_MS;
/** The server deletes the consumer if no client pulls from it for this long. */
const CONSUMER_IDLE_MS = 60_000;
const NS_PER_MS = 1e6;

const STATUS_HEARTBEAT = 100;
const STATUS_EXPIRED = 408;
/** Reported for several conditions. Those that match `END_OF_PULL` end a request normally. */
const STATUS_CONFLICT = 409;
const END_OF_PULL = /exceeds maxbytes|batch completed/i;
/** Header in a status message: number of messages that its request did not deliver. */
const PENDING_MESSAGES = "Nats-Pending-Messages";

// Reply subject for a message: $JS.ACK[.<domain>.<account>].<stream>.<consumer>.<deliveries>
// .<stream sequence>.<consumer sequence>.<time>.<pending>[.<random>]
const DIGIT_0 = 48;
const REPLY = "$JS.ACK.";
const LONG_REPLY_TOKENS = 11;
const SHORT_REPLY_SEQUENCE = 5;
const LONG_REPLY_SEQUENCE = 7;

/** A message in the stream. */
export interface StreamMessage {
  seq: number;
  message: Msg;
  /** Number of later messages in the stream at the time of delivery. */
  pending: number;
}

/**
 * Yields messages from `startSeq` on, in groups as they arrive. It never returns on its own.
 * @param lastSeq the stream's last message, as far as the caller knows.
 * @throws {Error} if the connection, the consumer, a message or the stream's end is lost, or if
 *   the consumer skips a message that the stream contains. Reading again may succeed.
 * @throws the signal's abort reason.
 */
export async function* readStream(
  stream: MirrorStream,
  { startSeq, lastSeq }: { startSeq: number; lastSeq: number },
  signal: AbortSignal,
): AsyncGenerator<StreamMessage[], void> {
  const { connection, manager, name } = stream;
  const { name: consumer } = await manager.consumers.add(name, {
    ack_policy: AckPolicy.None,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: startSeq,
    inactive_threshold: CONSUMER_IDLE_MS * NS_PER_MS,
    mem_storage: true,
    num_replicas: 1,
  });
  const pulls = new Pulls(stream, consumer, startSeq, lastSeq);
  const close = (error?: unknown) => pulls.fail(error ?? new Error("NATS closed the connection"));
  connection.closed().then(close, close);
  const abort = () => pulls.fail(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    signal.throwIfAborted();
    for (;;) yield await pulls.next();
  } finally {
    signal.removeEventListener("abort", abort);
    pulls.close();
  }
}

class Pulls {
  readonly #stream: MirrorStream;
  readonly #subject: string;
  readonly #inbox = `_INBOX.mirror.${crypto.randomUUID()}`;
  readonly #subscription: { unsubscribe(): void };
  /** Larger than the largest message, which could not be delivered otherwise. */
  readonly #pullBytes: number;
  /** Number of requested messages that may still arrive. */
  #outstanding = 0;
  #arrived: StreamMessage[] = [];
  #delivered = 0;
  /** The prefix that all reply subjects share, up to the stream sequence. */
  #replyPrefix = "";
  #failure: unknown = null;
  /** Resolves the promise that `next()` is waiting for. */
  #resume: (() => void) | null = null;
  /** Sequence of the next message. */
  #nextSeq: number;
  /** Sequences before messages in `#arrived` that were not delivered, though maybe stored. */
  #gaps: { first: number; end: number }[] = [];
  /** Whether anything has arrived since the last check. */
  #isHeard = true;
  /** `#nextSeq` as of the last check; 0 if the reader was busy. */
  #checkedSeq = 0;
  /** Highest last sequence that the stream is known to have had. */
  #lastSeq: number;
  readonly #watch: ReturnType<typeof setInterval>;

  constructor(stream: MirrorStream, consumer: string, startSeq: number, lastSeq: number) {
    this.#stream = stream;
    this.#nextSeq = startSeq;
    this.#lastSeq = lastSeq;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${stream.name}.${consumer}`;
    this.#pullBytes = Math.max(PULL_BYTES, 2 * (stream.connection.info?.max_payload ?? 0));
    this.#subscription = stream.connection.subscribe(this.#inbox, {
      callback: (error, message) => error ? this.fail(error) : this.#take(message),
    });
    this.#watch = setInterval(
      () => this.#check().catch((error) => this.fail(error)),
      CHECK_INTERVAL_MS,
    );
  }

  /** Waits for at least one message, and returns all that have arrived. */
  async next(): Promise<StreamMessage[]> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure;
      if (this.#outstanding <= PULL_MESSAGES) this.#pull();
      if (this.#arrived.length > 0) break;
      await new Promise<void>((resolve) => this.#resume = resolve);
    }
    const [arrived, gaps] = [this.#arrived, this.#gaps];
    this.#arrived = [];
    this.#gaps = [];
    for (const gap of gaps) await this.#confirm(gap);
    return arrived;
  }

  /**
   * Asks the stream's leader about a gap. The consumer may be on a server whose replica is still
   * catching up, and such a server skips what it does not have.
   * @throws {Error} if the stream holds messages in the gap.
   */
  async #confirm({ first, end }: { first: number; end: number }): Promise<void> {
    const { manager, name } = this.#stream;
    // The server returns the first message from `seq` on. The library's type lacks this member.
    const query = { seq: first, next_by_subj: ">" };
    const held = await manager.streams.getMessage(name, query);
    if (held === null || held.seq >= end) return;
    throw new Error(`the consumer skipped message ${held.seq}, which the stream contains`);
  }

  fail(error: unknown): void {
    this.#failure ??= error;
    this.#wake();
  }

  close(): void {
    clearInterval(this.#watch);
    if (!this.#stream.connection.isClosed()) this.#subscription.unsubscribe();
  }

  #pull(): void {
    // `closed()` reports a closed connection.
    if (this.#stream.connection.isClosed()) return;
    const request = {
      batch: PULL_MESSAGES,
      max_bytes: this.#pullBytes,
      expires: PULL_EXPIRES_MS * NS_PER_MS,
      idle_heartbeat: HEARTBEAT_MS * NS_PER_MS,
    };
    const reply = this.#inbox;
    this.#stream.connection.publish(this.#subject, JSON.stringify(request), { reply });
    this.#outstanding += PULL_MESSAGES;
  }

  #take(message: Msg): void {
    this.#isHeard = true;
    const reply = message.reply ?? "";
    if (!reply.startsWith(REPLY)) return this.#takeStatus(message);
    if (this.#replyPrefix === "") this.#replyPrefix = prefixOf(reply);
    const seqStart = this.#replyPrefix.length;
    const deliveredStart = nextToken(reply, seqStart);
    const pendingStart = nextToken(reply, nextToken(reply, deliveredStart));
    const seq = integerAt(reply, seqStart);
    // A repeated delivery.
    if (seq < this.#nextSeq) return;
    this.#delivered += 1;
    if (
      integerAt(reply, deliveredStart) !== this.#delivered || !reply.startsWith(this.#replyPrefix)
    ) {
      return this.fail(new Error(`message ${this.#delivered} to the stream's consumer was lost`));
    }
    if (seq > this.#nextSeq) this.#gaps.push({ first: this.#nextSeq, end: seq });
    this.#nextSeq = seq + 1;
    this.#outstanding -= 1;
    this.#arrived.push({ seq, message, pending: integerAt(reply, pendingStart) });
    this.#wake();
  }

  #takeStatus({ headers }: Msg): void {
    const [code, description] = [headers?.code ?? 0, headers?.description ?? ""];
    if (code === STATUS_HEARTBEAT) return;
    const isEnd = code === STATUS_EXPIRED ||
      code === STATUS_CONFLICT && END_OF_PULL.test(description);
    if (!isEnd) return this.fail(new Error(`reading the stream failed: ${code} ${description}`));
    this.#outstanding -= Number(headers?.get(PENDING_MESSAGES));
    this.#wake();
  }

  /** Fails if the consumer is lost or stuck. */
  async #check(): Promise<void> {
    const nextSeq = this.#nextSeq;
    const isWaiting = this.#resume !== null;
    if (isWaiting && !this.#isHeard) {
      return this.fail(new Error(`nothing from the stream's consumer in ${CHECK_INTERVAL_MS} ms`));
    }
    // A busy reader requests nothing.
    this.#isHeard = !isWaiting;
    const isIdle = isWaiting && nextSeq === this.#checkedSeq;
    this.#checkedSeq = isWaiting ? nextSeq : 0;
    if (!isIdle) return;
    // Heartbeats alone prove nothing: the server's replica of the stream may be stalled, the
    // message may have been lost on the way, or the stream may have lost its end.
    if (nextSeq <= this.#lastSeq) {
      return this.fail(new Error(`the stream's consumer is stuck at message ${nextSeq}`));
    }
    this.#lastSeq = Math.max(this.#lastSeq, (await this.#stream.info()).state.last_seq);
  }

  #wake(): void {
    this.#resume?.();
    this.#resume = null;
  }
}

/** Returns the part of a reply subject before the stream sequence. */
function prefixOf(reply: string): string {
  const tokens = reply.split(".");
  const at = tokens.length < LONG_REPLY_TOKENS ? SHORT_REPLY_SEQUENCE : LONG_REPLY_SEQUENCE;
  return `${tokens.slice(0, at).join(".")}.`;
}

/** Parses the integer at `start`, without the substrings that `split()` would allocate. */
function integerAt(text: string, start: number): number {
  let integer = 0;
  for (let at = start; at < text.length; at++) {
    const digit = text.charCodeAt(at) - DIGIT_0;
    if (digit < 0) break;
    integer = 10 * integer + digit;
  }
  return integer;
}

/** Returns where the token after the one at `start` begins. */
function nextToken(text: string, start: number): number {
  return text.indexOf(".", start) + 1;
}
