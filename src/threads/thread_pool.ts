/**
 * Threads of one module that share their requests: each has one at a time, and the rest wait in
 * order, so a thread that dies fails one request. Threads start when they are first needed.
 */
import type { TransferListItem } from "node:worker_threads";
import { RequestThread, type RequestThreadOptions } from "./request_thread.ts";

export interface ThreadPoolOptions extends RequestThreadOptions {
  threadsMax: number;
}

export class ThreadPool<Request, Response> {
  readonly #threads: readonly RequestThread<Request, Response>[];
  /** Threads without a request, the one used last in front. */
  readonly #idle: RequestThread<Request, Response>[];
  /** Requests without a thread. */
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

  /** As `RequestThread.request()`. */
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

  /** Ends the threads; all requests fail. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}
