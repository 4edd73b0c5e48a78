/**
 * Prepares batches from request bodies: small ones inline, larger ones on a worker thread, so that
 * parsing a body does not delay other clients. Bodies and batches are transferred, not copied. If
 * no thread can be started, the main thread prepares all batches.
 */
import { Buffer } from "node:buffer";
import { ApiError } from "../event/api_error.ts";
import { prepareBatch } from "../event/batch_reader.ts";
import type { PreparedBatch } from "../event/types.ts";
import { freeOwnMemory } from "../free_memory.ts";
import type { Maybe } from "../maybe.ts";
import {
  ThreadPool,
  type ThreadPoolOptions,
  ThreadUnavailableError,
} from "../threads/thread_pool.ts";

/** One thread for bodies of each kind, which takes 30 MiB. */
type BodyThreads = ThreadPool<ArrayBuffer, PreparedBatch>;

/** Bodies from this size on have a thread of their own, since one can take seconds. */
const SLOW_BODY_BYTES_MIN = 1024 * 1024;

/** The thread of slow bodies then ends, since it keeps up to 300 MiB of its last body. */
const SLOW_THREAD_IDLE_MS = 5_000;

/** Preparing a smaller body takes less than a millisecond, and less CPU time than a round trip. */
export const THREAD_BODY_BYTES_MIN: number = 64 * 1024;

/** Holds eight batches of 1,000 typical events. A batch of 10,000 exceeds it on its own. */
export const PREPARED_BYTES_MAX: number = 8 * 1024 * 1024;

/** Bodies that take longer to prepare have rooms of their own, so that others need not wait. */
export class BatchPreparer {
  readonly #inline = new PreparedRoom(prepareBatch);
  readonly #quick: PreparedRoom;
  readonly #slow: PreparedRoom;
  /** Ends the threads. Must not be called while a body is being prepared. */
  readonly close: () => Promise<unknown>;

  constructor(options: Partial<ThreadPoolOptions> = {}) {
    const module = new URL("./batch_preparer_worker.ts", import.meta.url);
    const quick: BodyThreads = new ThreadPool(module, { threadsMax: 1, ...options });
    const idleMs = SLOW_THREAD_IDLE_MS;
    const slow: BodyThreads = new ThreadPool(module, { threadsMax: 1, idleMs, ...options });
    this.#quick = new PreparedRoom((body) => prepareOn(quick, body));
    this.#slow = new PreparedRoom((body) => prepareOn(slow, body));
    this.close = () => Promise.all([quick.close(), slow.close()]);
  }

  /** See `PreparedRoom.prepare()`. The buffer of a large body may be transferred. */
  prepare(body: Uint8Array): Promise<Prepared> {
    if (body.length < THREAD_BODY_BYTES_MIN) return this.#inline.prepare(body);
    const room = body.length < SLOW_BODY_BYTES_MIN ? this.#quick : this.#slow;
    return room.prepare(body);
  }
}

/** A batch, whose memory is reserved until it is released. */
interface Prepared {
  batch: PreparedBatch;
  release: () => void;
}

/**
 * Bounds the memory used by prepared batches, which can be four times as large as their bodies. A
 * body is prepared only while earlier batches take less than the limit.
 */
export class PreparedRoom {
  readonly #prepare: (body: Uint8Array) => Maybe<PreparedBatch>;
  readonly #limitBytes: number;
  #heldBytes = 0;
  /** Bodies waiting to be prepared, in order. */
  readonly #waiting: { bodyBytes: number; resolve: () => void }[] = [];

  constructor(
    prepare: (body: Uint8Array) => Maybe<PreparedBatch>,
    limitBytes: number = PREPARED_BYTES_MAX,
  ) {
    this.#prepare = prepare;
    this.#limitBytes = limitBytes;
  }

  /** Prepares the batch in a body once memory is available. @throws {ApiError} */
  async prepare(body: Uint8Array): Promise<Prepared> {
    const bodyBytes = body.length;
    if (this.#isFull || this.#waiting.length > 0) {
      await new Promise<void>((resolve) => this.#waiting.push({ bodyBytes, resolve }));
    } else this.#heldBytes += bodyBytes;
    try {
      const preparing = this.#prepare(body);
      if (preparing instanceof Promise) this.#wakeNext();
      const batch = preparing instanceof Promise ? await preparing : preparing;
      const { lines, envelopes } = batch.events;
      const heldBytes = lines.length + envelopes.length;
      this.#heldBytes += heldBytes;
      const release = () => {
        // Left to the garbage collector, this memory would make it run four times as often and take
        // a quarter of the CPU time per event in batches of 1,000.
        freeOwnMemory(lines);
        freeOwnMemory(envelopes);
        this.#free(heldBytes);
      };
      return { batch, release };
    } finally {
      this.#free(bodyBytes);
    }
  }

  get #isFull(): boolean {
    return this.#heldBytes >= this.#limitBytes;
  }

  #free(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#wakeNext();
  }

  /** Wakes one body at a time; each wakes the next once its size is known. */
  #wakeNext(): void {
    const next = this.#isFull ? undefined : this.#waiting.shift();
    // More memory may be freed before the body is prepared, which counts already.
    this.#heldBytes += next?.bodyBytes ?? 0;
    next?.resolve();
  }
}

async function prepareOn(threads: BodyThreads, body: Uint8Array): Promise<PreparedBatch> {
  const isAlone = body.length === body.buffer.byteLength;
  const memory = (isAlone ? body : new Uint8Array(body)).buffer as ArrayBuffer;
  try {
    const batch = await threads.request(memory, [memory]);
    batch.events.lines = asBuffer(batch.events.lines);
    batch.events.envelopes = asBuffer(batch.events.envelopes);
    return batch;
  } catch (error) {
    if (error instanceof ThreadUnavailableError) return prepareBatch(body);
    const { name, message, code, context } = error as ApiError;
    if (name === "ApiError") throw new ApiError(code, message, context);
    throw new Error(`no thread could prepare a body: ${message}`, { cause: error });
  }
}

/** Restores a Buffer, which arrives from another thread as a Uint8Array. */
function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length);
}
