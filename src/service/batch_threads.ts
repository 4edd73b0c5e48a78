/**
 * Prepares request bodies. Small ones at once, on this thread; larger ones on others, so that no
 * client waits while another's body is parsed. Bodies move to a thread and come back as bytes that
 * are ready for the log; each thread has one body at a time, the rest wait in order.
 *
 * Threads are started when they are first needed. Where none can be (with narrow permissions a
 * runtime may not read their module), this thread does their work. One that dies takes its body
 * with it: that request fails, nothing of it was written, and the next body gets a new thread.
 *
 * With a body goes memory to make its batch in, as much as the batch before has taken for each byte
 * of its body; what is not needed, and the memory of the body, comes back.
 */
import { Buffer } from "node:buffer";
import { Worker } from "node:worker_threads";
import { ApiError } from "../event/api_error.ts";
import { prepareBatch } from "../event/batch.ts";
import { BufferPool } from "../event/buffer_pool.ts";
import type { PreparedBatch } from "../event/types.ts";
import {
  BATCH_THREAD_BODY_BYTES_MIN,
  BATCH_THREADS_MAX,
  THREAD_YOUNG_HEAP_MIB_MAX,
} from "../limits.ts";
import type { BatchAnswer, BatchOutcome, BatchQuestion } from "./batch_worker.ts";

interface Job extends PromiseWithResolvers<PreparedBatch> {
  body: Uint8Array;
}

export interface BatchThreadsOptions {
  /** Starts a thread; that of `batch_worker.ts` if absent. May throw. */
  start?: () => Worker;
  /** Smaller bodies stay on this thread. */
  bodyBytesMin?: number;
  /** Where memory for batches is found, and that of bodies goes. */
  memory?: BufferPool;
}

export class BatchThreads {
  readonly #start: () => Worker;
  readonly #bodyBytesMin: number;
  readonly #memory: BufferPool;
  readonly #threads = new Set<BatchThread>();
  readonly #waiting: Job[] = [];
  /** Whether a thread has ended before it was there: then no other one is tried. */
  #isInPlace = false;
  /** Of the last batch, for each byte of its body. */
  #textShares: readonly number[] = [];

  constructor({ start = startWorker, bodyBytesMin, memory }: BatchThreadsOptions = {}) {
    this.#start = start;
    this.#memory = memory ?? new BufferPool();
    this.#bodyBytesMin = bodyBytesMin ?? BATCH_THREAD_BODY_BYTES_MIN;
  }

  /**
   * Prepares a body, whose memory may be gone then.
   * @throws {ApiError} what `prepareBatch()` throws; of a large body by rejecting.
   */
  prepare(body: Uint8Array): PreparedBatch | Promise<PreparedBatch> {
    if (body.length < this.#bodyBytesMin || this.#isInPlace) return prepareBatch(body);
    const job = { body, ...Promise.withResolvers<PreparedBatch>() };
    this.#waiting.push(job);
    this.#assign();
    return job.promise;
  }

  /** Ends the threads; to be called when nothing is being prepared. */
  async close(): Promise<void> {
    await Promise.all([...this.#threads].map((thread) => thread.close()));
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      if (this.#isInPlace) {
        prepareInPlace(this.#waiting.shift()!);
        continue;
      }
      const idle = [...this.#threads].find(({ isIdle }) => isIdle);
      if (idle === undefined) return this.#startThread();
      this.#give(idle, this.#waiting.shift()!);
    }
  }

  #give(thread: BatchThread, job: Job): void {
    const { body } = job;
    const memory = this.#memory;
    thread.take(job, {
      memory: (memory.isAlone(body) ? body : new Uint8Array(body)).buffer as ArrayBuffer,
      bodyBytes: body.length,
      spare: this.#textShares.map((share) => memory.takeHeld(share * body.length))
        .filter((piece) => piece !== null),
    });
  }

  /** For the bodies that wait, unless as many threads as may be are there or on their way. */
  #startThread(): void {
    const starting = [...this.#threads].filter(({ isStarting }) => isStarting).length;
    if (this.#threads.size === BATCH_THREADS_MAX || starting >= this.#waiting.length) return;
    try {
      const thread: BatchThread = new BatchThread(this.#start(), {
        idle: () => this.#assign(),
        answered: (outcome, bodyBytes, unused) => {
          for (const piece of unused) this.#memory.give(piece);
          if (outcome.kind !== "batch") return;
          const { lines, envelopes } = outcome.batch.events;
          for (const text of [lines, envelopes]) this.#memory.adopt(text);
          this.#textShares = [lines.length / bodyBytes, envelopes.length / bodyBytes];
        },
        ended: () => {
          this.#threads.delete(thread);
          this.#isInPlace ||= thread.isStarting;
          this.#assign();
        },
      });
      this.#threads.add(thread);
    } catch {
      this.#isInPlace = true;
      this.#assign();
    }
  }
}

function startWorker(): Worker {
  const resourceLimits = { maxYoungGenerationSizeMb: THREAD_YOUNG_HEAP_MIB_MAX };
  return new Worker(new URL("./batch_worker.ts", import.meta.url), { resourceLimits });
}

function prepareInPlace({ body, resolve, reject }: Job): void {
  try {
    resolve(prepareBatch(body));
  } catch (error) {
    reject(error);
  }
}

interface ThreadEvents {
  /** What has become of a body; `unused` is memory that came back. */
  answered(outcome: BatchOutcome, bodyBytes: number, unused: readonly ArrayBuffer[]): void;
  /** It can take a job. */
  idle(): void;
  /** It is gone; may be told twice. */
  ended(): void;
}

class BatchThread {
  readonly #worker: Worker;
  readonly #events: ThreadEvents;
  #job: Job | null = null;
  #bodyBytes = 0;
  isStarting = true;

  constructor(worker: Worker, events: ThreadEvents) {
    this.#worker = worker;
    this.#events = events;
    const end = (failure: string) => {
      this.#job?.reject(new Error(`the thread that prepared a body is gone: ${failure}`));
      this.#job = null;
      events.ended();
    };
    worker.on("message", (answer: BatchAnswer) => {
      this.isStarting = false;
      this.#finish(answer);
      events.idle();
    });
    worker.on("error", (error) => end((error as Error).message));
    worker.on("messageerror", (error) => {
      end(error.message);
      void worker.terminate();
    });
    worker.on("exit", () => end("it ended"));
  }

  get isIdle(): boolean {
    return !this.isStarting && this.#job === null;
  }

  take(job: Job, question: BatchQuestion): void {
    this.#job = job;
    this.#bodyBytes = question.bodyBytes;
    this.#worker.postMessage(question, [question.memory, ...question.spare]);
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #finish(answer: BatchAnswer): void {
    if (answer.kind === "ready") return;
    const { resolve, reject } = this.#job!;
    this.#job = null;
    this.#events.answered(answer, this.#bodyBytes, answer.unused);
    switch (answer.kind) {
      case "batch":
        return resolve(received(answer.batch));
      case "refusal":
        return reject(new ApiError(answer.code, answer.message, answer.context));
      case "failure":
        return reject(new Error(`a body could not be prepared: ${answer.message}`));
    }
  }
}

/** Buffers come as plain bytes. */
function received(batch: PreparedBatch): PreparedBatch {
  const { lines, envelopes } = batch.events;
  return {
    ...batch,
    events: { ...batch.events, lines: asBuffer(lines), envelopes: asBuffer(envelopes) },
  };
}

function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length);
}
