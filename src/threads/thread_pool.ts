/**
 * Threads of one module that share a queue: each takes one request at a time, so a thread that dies
 * fails one request. Threads start when they are first needed.
 */
import type { TransferListItem } from "node:worker_threads";
import { RequestThread, type RequestThreadOptions } from "./request_thread.ts";

export interface ThreadPoolOptions extends RequestThreadOptions {
  threadsMax: number;
}

export class ThreadPool<Request, Response> {
  readonly #threads: readonly RequestThread<Request, Response>[];
  /** The most recently used one first. */
  readonly #idle: RequestThread<Request, Response>[];
  readonly #waiting: ((thread: RequestThread<Request, Response>) => void)[] = [];

  constructor(module: URL, { threadsMax, ...options }: ThreadPoolOptions) {
    this.#threads = Array.from(
      { length: threadsMax },
      () => new RequestThread<Request, Response>(module, options),
    );
    this.#idle = [...this.#threads];
  }

  /** See `RequestThread.isUnavailable`. */
  get isUnavailable(): boolean {
    return this.#threads.some(({ isUnavailable }) => isUnavailable);
  }

  /** See `RequestThread.request()`. */
  async request(message: Request, transfer: TransferListItem[] = []): Promise<Response> {
    const thread = this.#idle.shift() ??
      await new Promise<RequestThread<Request, Response>>((resolve) => this.#waiting.push(resolve));
    try {
      return await thread.request(message, transfer);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#idle.unshift(thread);
      else next(thread);
    }
  }

  /** Ends the threads; pending requests fail. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}
