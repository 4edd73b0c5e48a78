/**
 * Prepares batches from request bodies: small ones inline, larger ones on a worker thread, so that
 * parsing a body does not delay other clients. Bodies and batches are transferred, not copied. If
 * no thread can be started, the main thread prepares all batches.
 */
import { Buffer } from "node:buffer";
import { ApiError } from "../event/api_error.ts";
import { prepareBatch } from "../event/batch.ts";
import type { PreparedBatch } from "../event/types.ts";
import {
  ThreadPool,
  type ThreadPoolOptions,
  ThreadUnavailableError,
} from "../threads/thread_pool.ts";
import type { PreparedBody } from "./batch_preparer_worker.ts";

/** Threads for bodies of each kind. Each takes 30 MiB. */
const THREADS_MAX = 1;

/** Bodies from this size on have a thread of their own, since one can take seconds. */
export const SLOW_BODY_BYTES_MIN: number = 1024 * 1024;

/** Preparing a smaller body takes less than a millisecond, and less CPU time than a round trip. */
export const THREAD_BODY_BYTES_MIN: number = 64 * 1024;

export class BatchPreparer {
  readonly #quick: ThreadPool<ArrayBuffer, PreparedBody>;
  readonly #slow: ThreadPool<ArrayBuffer, PreparedBody>;

  constructor(options: Partial<ThreadPoolOptions> = {}) {
    const module = new URL("./batch_preparer_worker.ts", import.meta.url);
    const pool = () =>
      new ThreadPool<ArrayBuffer, PreparedBody>(module, { threadsMax: THREADS_MAX, ...options });
    this.#quick = pool();
    this.#slow = pool();
  }

  /** See `prepareBatch()`. The buffer of a large body may be transferred. */
  prepare(body: Uint8Array): PreparedBatch | Promise<PreparedBatch> {
    return body.length < THREAD_BODY_BYTES_MIN ? prepareBatch(body) : this.#prepareLarge(body);
  }

  /** Ends the threads. Must not be called while a body is being prepared. */
  async close(): Promise<void> {
    await Promise.all([this.#quick.close(), this.#slow.close()]);
  }

  async #prepareLarge(body: Uint8Array): Promise<PreparedBatch> {
    const isAlone = body.length === body.buffer.byteLength;
    const memory = (isAlone ? body : new Uint8Array(body)).buffer as ArrayBuffer;
    const threads = body.length >= SLOW_BODY_BYTES_MIN ? this.#slow : this.#quick;
    try {
      return received(await threads.request(memory, [memory]));
    } catch (error) {
      if (error instanceof ThreadUnavailableError) return prepareBatch(body);
      if (error instanceof ApiError) throw error;
      const { message } = error as Error;
      throw new Error(`no thread could prepare a body: ${message}`, { cause: error });
    }
  }
}

/** @throws {ApiError} if the body was rejected. */
function received(prepared: PreparedBody): PreparedBatch {
  if ("refusal" in prepared) {
    const { code, message, context } = prepared.refusal;
    throw new ApiError(code, message, context);
  }
  const { events } = prepared.batch;
  events.lines = asBuffer(events.lines);
  events.envelopes = asBuffer(events.envelopes);
  return prepared.batch;
}

/** Restores a Buffer, which arrives from another thread as a Uint8Array. */
function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length);
}
