/** Verifies segments on several threads, this one among them. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { SEGMENT_THREAD_LOG_BYTES_MIN, SEGMENT_THREADS_MAX } from "../limits.ts";
import { fileStorage } from "./file_storage.ts";
import { checkSegment, type SegmentChecking } from "./segment_checking.ts";
import type { SegmentAnswer, SegmentQuestion } from "./segment_worker.ts";
import type { SegmentEntry } from "./segment_verify.ts";

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
  try {
    const start = () => new Worker(new URL("./segment_worker.ts", import.meta.url));
    const threads = Array.from({ length: count - 1 }, () => new SegmentThread(start(), options));
    return new SegmentThreads(threads, options);
  } catch {
    return null;
  }
}

/** One that verifies a segment at a time. */
interface Lane {
  readonly isLost: boolean;
  check(entry: SegmentEntry): Promise<SegmentAnswer>;
}

class SegmentThread implements Lane {
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
  readonly #freeLanes: Lane[];
  /** The segment that this thread is at, or was at last. */
  #here: Promise<SegmentAnswer> = Promise.resolve(null);
  readonly #waiting: { entry: SegmentEntry; resolve: (answer: SegmentAnswer) => void }[] = [];

  constructor(threads: readonly SegmentThread[], { folder, chain }: SegmentThreadsOptions) {
    const storage = fileStorage(folder);
    const here: Lane = {
      isLost: false,
      check: (entry) => this.#here = checkSegment(storage, entry, chain),
    };
    this.#threads = threads;
    this.#freeLanes = [...threads, here];
    this.segmentsAhead = 2 * this.#freeLanes.length;
  }

  check(entry: SegmentEntry): Promise<SegmentAnswer> {
    return new Promise((resolve) => {
      this.#waiting.push({ entry, resolve });
      this.#assign();
    });
  }

  async close(): Promise<void> {
    this.#waiting.length = 0;
    await Promise.all([this.#here, ...this.#threads.map((thread) => thread.close())]);
  }

  /** The last lane, which is ready at once, is given work first. */
  #assign(): void {
    while (this.#freeLanes.length > 0 && this.#waiting.length > 0) {
      const lane = this.#freeLanes.pop()!;
      const { entry, resolve } = this.#waiting.shift()!;
      void lane.check(entry).then((answer) => {
        resolve(answer);
        if (!lane.isLost) this.#freeLanes.push(lane);
        this.#assign();
      });
    }
  }
}
