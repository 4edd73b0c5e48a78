/**
 * Prepares request bodies, and fills large batches. Small bodies at once, on this thread; larger
 * ones on others, so that no client waits while another's body is parsed. What a thread works on
 * moves to it and comes back as bytes that are ready for the log; each thread has one job at a
 * time, the rest wait in order, batches that are to be filled before bodies.
 *
 * Threads are started when they are first needed. Where none can be (with narrow permissions a
 * runtime may not read their module), this thread does their work. One that dies takes its job with
 * it: that request fails, nothing of it was written, and the next job gets a new thread.
 *
 * With a body goes memory to make its batch in, as much as the batch before has taken for each byte
 * of its body; what is not needed, and the memory of the body, comes back.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { prepareBatch } from "../event/batch.ts";
import { BufferPool } from "../event/buffer_pool.ts";
import type { EncodedEvents, FillValues } from "../event/encoded_events.ts";
import type { PreparedBatch } from "../event/types.ts";
import { THREAD_YOUNG_HEAP_MIB_MAX } from "../limits.ts";
import { fillInTurns } from "../log/wal/filled_batch.ts";
import { type BatchJob, type BatchMemory, FillingJob, PreparingJob } from "./batch_jobs.ts";
import type { BatchAnswer } from "./batch_worker.ts";

/**
 * Threads that prepare larger ones, where there are processors for them beside the writer's: each
 * takes 30 MiB, and on two processors a second one brings nothing.
 */
const BATCH_THREADS_MAX = 2;

/** Smaller bodies are prepared in less time than another thread takes to answer. */
export const BATCH_THREAD_BODY_BYTES_MIN: number = 16 * 1024;

export interface BatchThreadsOptions {
  /** Starts a thread; that of `batch_worker.ts` if absent. May throw. */
  start?: () => Worker;
  /** Smaller bodies stay on this thread. */
  bodyBytesMin?: number;
  /** Where memory for batches is found, and that of bodies goes. */
  memory?: BufferPool;
  /**
   * Threads at the most; if absent, as many as there are processors beside this thread's, within
   * BATCH_THREADS_MAX.
   */
  threadsMax?: number;
}

export class BatchThreads {
  readonly #start: () => Worker;
  readonly #bodyBytesMin: number;
  readonly #memory: BatchMemory;
  readonly #threadsMax: number;
  readonly #threads = new Set<BatchThread>();
  readonly #waiting: BatchJob[] = [];
  /** Whether a thread has ended before it was there: then no other one is tried. */
  #isInPlace = false;

  constructor(options: BatchThreadsOptions = {}) {
    this.#start = options.start ?? startWorker;
    this.#memory = { pool: options.memory ?? new BufferPool(), textShares: [] };
    this.#bodyBytesMin = options.bodyBytesMin ?? BATCH_THREAD_BODY_BYTES_MIN;
    this.#threadsMax = options.threadsMax ??
      Math.max(1, Math.min(availableParallelism() - 1, BATCH_THREADS_MAX));
  }

  /**
   * Prepares a body, whose memory may be gone then.
   * @throws {ApiError} what `prepareBatch()` throws; of a large body by rejecting.
   */
  prepare(body: Uint8Array): PreparedBatch | Promise<PreparedBatch> {
    if (body.length < this.#bodyBytesMin || this.#isInPlace) return prepareBatch(body);
    const job = new PreparingJob(body, this.#memory);
    this.#waiting.push(job);
    this.#assign();
    return job.outcome;
  }

  /**
   * Fills a batch, whose events are gone until this returns: an `EventFiller`.
   * @throws {LostBatchError} the thread that had it died.
   */
  fill(events: EncodedEvents, values: FillValues): Promise<string> {
    const { pool } = this.#memory;
    if (this.#isInPlace || !FillingJob.canMove(events, pool)) return fillInTurns(events, values);
    const job = new FillingJob(events, values, pool);
    this.#waiting.unshift(job);
    this.#assign();
    return job.outcome;
  }

  /** Ends the threads; to be called when nothing is being prepared. */
  async close(): Promise<void> {
    await Promise.all([...this.#threads].map((thread) => thread.close()));
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      if (this.#isInPlace) {
        this.#waiting.shift()!.runHere();
        continue;
      }
      const idle = [...this.#threads].find(({ isIdle }) => isIdle);
      if (idle === undefined) return this.#startThread();
      idle.take(this.#waiting.shift()!);
    }
  }

  /** For the jobs that wait, unless as many threads as may be are there or on their way. */
  #startThread(): void {
    const starting = [...this.#threads].filter(({ isStarting }) => isStarting).length;
    if (this.#threads.size === this.#threadsMax || starting >= this.#waiting.length) return;
    try {
      const thread: BatchThread = new BatchThread(this.#start(), {
        idle: () => this.#assign(),
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

interface ThreadEvents {
  /** It can take a job. */
  idle(): void;
  /** It is gone; may be told twice. */
  ended(): void;
}

class BatchThread {
  readonly #worker: Worker;
  #job: BatchJob | null = null;
  isStarting = true;

  constructor(worker: Worker, events: ThreadEvents) {
    this.#worker = worker;
    const end = (failure: string) => {
      this.#job?.fail(failure);
      this.#job = null;
      events.ended();
    };
    worker.on("message", (answer: BatchAnswer) => {
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

  /** Where there is no memory to ask with, the job fails and the thread goes on. */
  take(job: BatchJob): void {
    try {
      const { question, moved } = job.question();
      this.#worker.postMessage(question, moved);
      this.#job = job;
    } catch (error) {
      job.fail((error as Error).message);
    }
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #finish(answer: BatchAnswer): void {
    this.isStarting = false;
    const job = this.#job;
    this.#job = null;
    if (answer.kind !== "ready") job!.finish(answer);
  }
}
