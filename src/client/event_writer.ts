/** A writer that appends the events of a source in batches, in order. */
import { Buffer } from "node:buffer";
import { randomUUID } from "node:crypto";
import type { EventFault } from "../event/api_error.ts";
import type { Receipt, StreamPrecondition, SubmittedEvent } from "../event/types.ts";
import { BatchQueue, type QueuedEvent } from "./batch_queue.ts";
import { type EncodedBatch, encodeEvent } from "./encoded_batch.ts";
import { EventLogError } from "./errors.ts";
import { refuseUnknown } from "./transport.ts";

/** Options for `writer()`. */
export interface WriterOptions {
  /** The submitting source. */
  source: string;
  /**
   * Batches get the ids `PREFIX/1`, `PREFIX/2`, ... and end by number and size of events alone, so
   * that the same events appended again are duplicates. By default, each writer has its own ids.
   */
  batchIdPrefix?: string;
  /** Maximum number of events in a batch, up to 10,000; default 1,000. */
  eventsMax?: number;
  /** Maximum size of a batch of several events in JSON; default 4 MiB. */
  bytesMax?: number;
  /** Longest time that an event waits for others; default 5; not with `batchIdPrefix`. */
  delayMs?: number;
  /** Size of the events in memory from which `ready` is pending; default 16 MiB. */
  bufferBytesMax?: number;
  /** Aborts all requests. Events without a receipt may or may not be committed. */
  signal?: AbortSignal;
}

const WRITER_OPTIONS = "source batchIdPrefix eventsMax bytesMax delayMs bufferBytesMax signal";

export const WRITER_EVENTS_MAX = 1000;
export const WRITER_BYTES_MAX: number = 4 * 1024 * 1024;
const WRITER_DELAY_MS = 5;
const WRITER_BUFFER_BYTES_MAX = 16 * 1024 * 1024;

interface Waiting extends QueuedEvent {
  precondition: StreamPrecondition | undefined;
  resolve(receipt: Receipt): void;
  reject(error: unknown): void;
}

/** Options for `append()` of a writer. */
export interface WriteOptions {
  /** Commits the event only if this is the id of its stream's last event; null: no event. */
  expectedFrontier?: string | null;
}

/**
 * Takes events one by one, and appends them in order. An event that breaks a rule, or whose
 * `expectedFrontier` does not match, rejects its own `append()`; the writer goes on without it.
 * After any other error, every `append()` without a receipt rejects with it, as do later ones.
 *
 * @example
 * ```ts
 * import { EventLogClient, unixFetch } from "@ground/service";
 *
 * const log = new EventLogClient(unixFetch("demo/data/ground.sock"));
 * const writer = log.writer({ source: "sensor" });
 * for (let n = 0; n < 5000; n++) {
 *   await writer.ready;
 *   void writer.append({ stream: "readings", record_key: `${n}`, kind: "upserted", payload: n });
 * }
 * await writer.close(); // All are durable now; otherwise it throws.
 * ```
 */
export class EventWriter {
  readonly #queue: BatchQueue<Waiting>;
  readonly #bufferBytesMax: number;
  #isClosed = false;

  /** @ignore Use `EventLogClient.writer()`. */
  constructor(send: (batch: EncodedBatch) => Promise<Receipt>, options: WriterOptions) {
    refuseUnknown("writer()", options, WRITER_OPTIONS);
    const { source, batchIdPrefix, eventsMax = WRITER_EVENTS_MAX, bytesMax = WRITER_BYTES_MAX } =
      options;
    if (typeof source !== "string") throw new TypeError("writer() needs a source");
    if (batchIdPrefix !== undefined && options.delayMs !== undefined) {
      throw new TypeError("writer() has either batchIdPrefix or delayMs: ids need fixed batches");
    }
    const delayMs = batchIdPrefix === undefined ? options.delayMs ?? WRITER_DELAY_MS : Infinity;
    // A queue that is full must have a batch that can be sent.
    this.#bufferBytesMax = Math.max(options.bufferBytesMax ?? WRITER_BUFFER_BYTES_MAX, bytesMax);
    const bounds = { eventsMax, bytesMax, delayMs, bufferBytesMax: this.#bufferBytesMax };
    for (const [name, value] of Object.entries(bounds)) {
      if (!(value >= 0)) throw new TypeError(`writer(): ${name} must be at least 0, got ${value}`);
    }
    const prefix = batchIdPrefix ?? randomUUID();
    let number = 0;
    this.#queue = new BatchQueue((events) => {
      const batchId = `${prefix}/${++number}`;
      return sendValid((valid) => send({ source, batchId, ...valid }), events);
    }, bounds);
  }

  /** Resolves once there is room for an event; rejects if the writer has failed. */
  get ready(): Promise<void> {
    const ready = this.#queue.ready();
    ready.catch(() => {});
    return ready;
  }

  /**
   * Appends an event, and resolves with the receipt of its batch once it is durable. A rejection
   * need not be handled if the one of `close()` is.
   * @throws {TypeError} if JSON cannot represent the event.
   * @throws {RangeError} if the buffer is full: await `ready` before each call.
   */
  append(event: SubmittedEvent, options: WriteOptions = {}): Promise<Receipt> {
    const { promise, resolve, reject } = Promise.withResolvers<Receipt>();
    promise.catch(() => {});
    try {
      refuseUnknown("append()", options, "expectedFrontier");
      if (this.#isClosed) throw new Error("the writer is closed");
      if (this.#queue.isFull) {
        const limit = `${this.#bufferBytesMax} bytes`;
        throw new RangeError(
          `the writer's buffer of ${limit} is full; await ready before append()`,
        );
      }
      const text = encodeEvent(event);
      const { expectedFrontier } = options;
      const isConditional = expectedFrontier !== undefined;
      const precondition = isConditional ? { stream: event.stream, expectedFrontier } : undefined;
      const sizeBytes = Buffer.byteLength(text);
      this.#queue.add({ text, sizeBytes, precondition, resolve, reject }, isConditional);
    } catch (error) {
      reject(error);
    }
    return promise;
  }

  /** Sends all events so far; rejects if the writer has failed. */
  flush(): Promise<void> {
    return this.#queue.flush();
  }

  /** Sends all events, and accepts no more; rejects if the writer has failed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }
}

type Send = (batch: Pick<EncodedBatch, "events" | "precondition">) => Promise<Receipt>;

/** Sends a batch, without the events that the service finds invalid, and settles its promises. */
async function sendValid(send: Send, events: Waiting[]): Promise<void> {
  try {
    const precondition = events[0]?.precondition;
    const receipt = await send({ events: events.map(({ text }) => text), precondition });
    for (const { resolve } of events) resolve(receipt);
  } catch (error) {
    const faults = faultyIndexes(error, events.length);
    const valid = events.filter((_, index) => !faults.has(index));
    if (valid.length === events.length) throw error;
    for (const index of faults) events[index]?.reject(error);
    if (valid.length > 0) await sendValid(send, valid);
  }
}

/** Returns which events of a batch, of `count` events, an error is about. */
function faultyIndexes(error: unknown, count: number): Set<number> {
  if (!(error instanceof EventLogError)) return new Set();
  if (error.code === "stream_frontier_conflict") return new Set([0]);
  if (error.code === "body_too_large" && count === 1) return new Set([0]);
  const { errors } = Object(error.body) as { errors?: EventFault[] };
  return new Set(Array.isArray(errors) ? errors.map(({ index }) => index) : []);
}
