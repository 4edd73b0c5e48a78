/**
 * Verifies segments on several threads. Not on this one, whose memory for short-lived values cannot
 * be bounded.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { THREAD_YOUNG_HEAP_MIB_MAX } from "../../limits.ts";
import type { SegmentChecking } from "./segment_checking.ts";
import type { SegmentAnswer, SegmentQuestion } from "./segment_worker.ts";
import type { SegmentEntry } from "./segment_verify.ts";

/** Threads that verify segments, with 32 to 64 MiB each; no more than there are processors. */
const SEGMENT_THREADS_MAX = 8;

/** The same of the segments of a log, which are smaller than what they were made from. */
export const SEGMENT_THREAD_LOG_BYTES_MIN: number = 8 * 1024 * 1024;

export interface SegmentThreadsOptions {
  /** The log folder. */
  folder: string;
  /** Whether to recompute all hashes. */
  chain: boolean;
}

/**
 * Starts threads for these segments, as many as there are processors.
 * @returns null for few or small ones, where there is one processor, and where a thread cannot be
 *   started: with narrow permissions a runtime may not read its module.
 */
export function startSegmentThreads(
  segments: readonly SegmentEntry[],
  options: SegmentThreadsOptions,
): SegmentChecking | null {
  const sizeBytes = segments.reduce((sum, { bytes }) => sum + bytes, 0);
  const count = Math.min(availableParallelism(), segments.length, SEGMENT_THREADS_MAX);
  if (count < 2 || sizeBytes < SEGMENT_THREAD_LOG_BYTES_MIN) return null;
  const threads: SegmentThread[] = [];
  try {
    while (threads.length < count) threads.push(new SegmentThread(startWorker(), options));
    return new SegmentThreads(threads);
  } catch {
    for (const thread of threads) void thread.close();
    return null;
  }
}

function startWorker(): Worker {
  const resourceLimits = { maxYoungGenerationSizeMb: THREAD_YOUNG_HEAP_MIB_MAX };
  return new Worker(new URL("./segment_worker.ts", import.meta.url), { resourceLimits });
}

/** One that verifies a segment at a time. */
class SegmentThread {
  readonly #worker: Worker;
  readonly #options: SegmentThreadsOptions;
  #answer: ((answer: SegmentAnswer) => void) | null = null;
  isLost = false;

  constructor(worker: Worker, options: SegmentThreadsOptions) {
    this.#worker = worker;
    this.#options = options;
    worker.on("message", (answer: SegmentAnswer) => this.#answer?.(answer));
    worker.on("error", () => this.#lose());
    worker.on("exit", () => this.#lose());
  }

  check(entry: SegmentEntry): Promise<SegmentAnswer> {
    if (this.isLost) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#worker.postMessage({ ...this.#options, entry } satisfies SegmentQuestion);
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Without its thread nothing is known; whoever asked verifies the segment then. */
  #lose(): void {
    this.isLost = true;
    this.#answer?.(null);
  }
}

class SegmentThreads implements SegmentChecking {
  readonly segmentsAhead: number;
  readonly #threads: readonly SegmentThread[];
  readonly #free: SegmentThread[];
  readonly #waiting: { entry: SegmentEntry; resolve: (answer: SegmentAnswer) => void }[] = [];

  constructor(threads: readonly SegmentThread[]) {
    this.#threads = threads;
    this.#free = [...threads];
    this.segmentsAhead = 2 * threads.length;
  }

  check(entry: SegmentEntry): Promise<SegmentAnswer> {
    return new Promise((resolve) => {
      this.#waiting.push({ entry, resolve });
      this.#assign();
    });
  }

  async close(): Promise<void> {
    this.#waiting.length = 0;
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }

  #assign(): void {
    while (this.#free.length > 0 && this.#waiting.length > 0) {
      const thread = this.#free.pop()!;
      const { entry, resolve } = this.#waiting.shift()!;
      void thread.check(entry).then((answer) => {
        resolve(answer);
        if (!thread.isLost) this.#free.push(thread);
        this.#assign();
      });
    }
    // Nobody is left who could answer.
    if (this.#threads.every(({ isLost }) => isLost)) {
      for (const { resolve } of this.#waiting.splice(0)) resolve(null);
    }
  }
}
