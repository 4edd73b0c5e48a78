/**
 * Makes segments on another thread, so that those who append and read do not wait for it. The
 * thread is there while there is something to be sealed, and for a while after that: a start is a
 * tenth of a second of work at one go.
 */
import { clearTimeout, setTimeout } from "node:timers";
import { Worker } from "node:worker_threads";
import { assert } from "../../assert.ts";
import { THREAD_YOUNG_HEAP_MIB_MAX } from "../../limits.ts";
import { SealBacklog } from "./pace.ts";
import type { MadeSegment, SegmentMaker, SegmentTask } from "./segment_maker.ts";
import type { SealAnswer, SealWorkerData } from "./seal_worker.ts";

/** A thread that seals ends when it has had nothing to do for so long. */
const SEAL_THREAD_IDLE_MS = 60_000;

export interface SealThreadOptions {
  /** Starts a thread; throws where none can be. */
  start?: (workerData: SealWorkerData) => Worker;
  /**
   * How long a thread may have nothing to do before it is ended; `SEAL_THREAD_IDLE_MS` if absent.
   */
  idleMs?: number;
}

const STOPPED = "the thread was stopped";

/** Makes segments of the log in a folder. A thread that dies is started anew for the next one. */
export function sealThread(
  logDir: string,
  { start = startWorker, idleMs = SEAL_THREAD_IDLE_MS }: SealThreadOptions = {},
): SegmentMaker {
  const backlog = new SealBacklog();
  return new SealThread(() => start({ logDir, backlog: backlog.memory }), backlog, idleMs);
}

function startWorker(workerData: SealWorkerData): Worker {
  const resourceLimits = { maxYoungGenerationSizeMb: THREAD_YOUNG_HEAP_MIB_MAX };
  return new Worker(new URL("./seal_worker.ts", import.meta.url), { workerData, resourceLimits });
}

class SealThread implements SegmentMaker {
  readonly #startWorker: () => Worker;
  readonly #backlog: SealBacklog;
  readonly #idleMs: number;
  #worker: Worker | null = null;
  #waiting: PromiseWithResolvers<MadeSegment> | null = null;
  /** Ends a thread that has nothing to do. */
  #idle: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(startWorker: () => Worker, backlog: SealBacklog, idleMs: number) {
    this.#startWorker = startWorker;
    this.#backlog = backlog;
    this.#idleMs = idleMs;
  }

  /** @throws {Error} also when no thread can be started, when it dies, and when this is closed. */
  make(task: SegmentTask): Promise<MadeSegment> {
    assert(this.#waiting === null, "segments are made one at a time");
    if (this.#isClosed) return Promise.reject(new Error(STOPPED));
    const waiting: PromiseWithResolvers<MadeSegment> = Promise.withResolvers();
    this.#waiting = waiting;
    this.#wake();
    try {
      this.#worker ??= this.#start();
      this.#worker.postMessage(task);
    } catch (error) {
      this.#end(this.#worker, `a thread could not be started: ${(error as Error).message}`);
    }
    return waiting.promise;
  }

  setBacklog(bytes: number): void {
    this.#backlog.bytes = bytes;
  }

  rest(): void {
    assert(this.#waiting === null, "a thread rests when no segment is made");
    this.#wake();
    if (this.#worker === null) return;
    this.#idle = setTimeout(() => void this.#stop(), this.#idleMs);
    this.#idle.unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#stop();
  }

  async #stop(): Promise<void> {
    this.#wake();
    const worker = this.#worker;
    this.#end(worker, STOPPED);
    await worker?.terminate();
  }

  #wake(): void {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#idle = null;
  }

  #start(): Worker {
    const worker = this.#startWorker();
    worker.on("message", (answer: SealAnswer) => this.#take(worker, answer));
    worker.on("error", (error) => this.#end(worker, (error as Error).message));
    worker.on("exit", () => this.#end(worker, "the thread has ended"));
    return worker;
  }

  #take(worker: Worker, answer: SealAnswer): void {
    if (worker !== this.#worker) return;
    const waiting = this.#waiting;
    this.#waiting = null;
    if ("made" in answer) waiting?.resolve(answer.made);
    else waiting?.reject(new Error(answer.failure));
  }

  /** A thread is of no use any more, and whoever waits for it is told. */
  #end(worker: Worker | null, why: string): void {
    if (worker !== this.#worker) return;
    this.#worker = null;
    this.#waiting?.reject(new Error(why));
    this.#waiting = null;
  }
}
