/**
 * Worker threads that run the same module and share a request queue. Each thread serves one request
 * at a time, so a thread that dies fails only one request; the next request starts another thread.
 * Threads start on demand. Requests are sent only to running threads, so if no thread can be
 * started, the caller still owns its buffers. The module must call `answerRequests()`.
 */
import { clearTimeout, setTimeout } from "node:timers";
import { type MessagePort, parentPort, type TransferListItem, Worker } from "node:worker_threads";
import { assert } from "../assert.ts";

/** A thread died before it received anything, so the caller can do the work itself. */
export class ThreadUnavailableError extends Error {
  override name = "ThreadUnavailableError";
}

export interface ThreadPoolOptions {
  threadsMax: number;
  /** Passed to each thread as `workerData`. */
  workerData?: unknown;
  /** Idle timeout for a thread. By default, there is none. */
  idleMs?: number;
  /** Starts a worker; replaced by tests. May throw. */
  start?: (module: URL, workerData: unknown) => Worker;
}

/** Messages from a thread: `ready` once, then one per request. */
type Message<Response> =
  | { ready: true }
  | { response: Response }
  | { failure: Pick<Error, "name" | "message"> };

const CLOSED = "the thread was closed";

/** Young generation size per thread. V8's default takes 100 MiB more without being faster. */
const YOUNG_HEAP_MIB_MAX = 12;

export class ThreadPool<Request, Response> {
  readonly #threads: readonly RequestThread<Request, Response>[];
  /** Idle threads, most recently used first. */
  readonly #idle: RequestThread<Request, Response>[];
  readonly #waiting: ((thread: RequestThread<Request, Response>) => void)[] = [];

  constructor(module: URL, options: ThreadPoolOptions) {
    this.#threads = Array.from(
      { length: options.threadsMax },
      () => new RequestThread<Request, Response>(module, options),
    );
    this.#idle = [...this.#threads];
  }

  /**
   * Sends a request, transfers `transfer` to the thread, and returns the response.
   * @throws {Error} if the thread did not start, died or was closed before it responded, or with
   *   the members of the handler's error, such as `name`.
   */
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

  /** Ends the threads; pending requests fail once their thread has ended. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}

class RequestThread<Request, Response> {
  readonly #start: () => Worker;
  readonly #idleMs: number | undefined;
  #worker: Worker | null = null;
  /** The request in progress. */
  #pending: PromiseWithResolvers<Response> | null = null;
  /** Sends the request that was submitted before the thread ran. */
  #unsent: (() => void) | null = null;
  #isRunning = false;
  #idleTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(module: URL, { start = startWorker, workerData, idleMs }: ThreadPoolOptions) {
    this.#start = () => start(module, workerData);
    this.#idleMs = idleMs;
  }

  /** Messages hold ArrayBuffers: Deno visits each element of a typed array, which takes seconds. */
  request(message: Request, transfer: TransferListItem[]): Promise<Response> {
    if (this.#isClosed) return Promise.reject(new Error(CLOSED));
    assert(this.#pending === null, "a thread must have at most one request");
    clearTimeout(this.#idleTimer);
    const pending: PromiseWithResolvers<Response> = Promise.withResolvers();
    this.#pending = pending;
    const send = () => this.#send(message, transfer);
    if (this.#isRunning) send();
    else this.#unsent = send;
    try {
      this.#worker ??= this.#watch(this.#start());
      this.#worker.ref();
    } catch (error) {
      this.#lose(null, `the thread could not be started: ${(error as Error).message}`);
    }
    return pending.promise;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
    this.#lose(this.#worker, CLOSED);
  }

  #send(message: Request, transfer: TransferListItem[]): void {
    try {
      this.#worker!.postMessage(message, transfer);
    } catch (error) {
      // Cloning the message ran out of memory; the thread itself is unaffected.
      this.#takePending().reject(new Error(`the request could not be sent: ${error}`));
    }
  }

  #watch(worker: Worker): Worker {
    worker.on("message", (message: Message<Response>) => {
      if (worker === this.#worker) this.#receive(message);
    });
    const lose = (why: string) => this.#lose(worker, why);
    worker.on("error", (error) => lose((error as Error).message));
    worker.on("messageerror", (error) => this.#end(worker, error.message));
    worker.on("exit", () => lose(this.#isClosed ? CLOSED : "the thread ended"));
    return worker;
  }

  #receive(message: Message<Response>): void {
    if ("ready" in message) {
      this.#isRunning = true;
      this.#unsent?.();
      this.#unsent = null;
    } else if ("response" in message) {
      this.#takePending().resolve(message.response);
    } else {
      const { failure } = message;
      this.#takePending().reject(Object.assign(new Error(failure.message), failure));
    }
  }

  /** Removes and returns the pending request, which leaves the thread idle. */
  #takePending(): PromiseWithResolvers<Response> {
    const pending = this.#pending;
    assert(pending !== null, "a thread must respond once per request");
    this.#pending = null;
    const worker = this.#worker!;
    // An idle thread does not keep the process running.
    worker.unref();
    const end = () => this.#end(worker, "the thread was idle");
    if (this.#idleMs !== undefined) this.#idleTimer = setTimeout(end, this.#idleMs).unref();
    return pending;
  }

  #lose(worker: Worker | null, why: string): void {
    if (worker !== this.#worker) return;
    const isUnavailable = !this.#isRunning && !this.#isClosed;
    clearTimeout(this.#idleTimer);
    this.#worker = null;
    this.#isRunning = false;
    this.#unsent = null;
    this.#pending?.reject(isUnavailable ? new ThreadUnavailableError(why) : new Error(why));
    this.#pending = null;
  }

  #end(worker: Worker, why: string): void {
    this.#lose(worker, why);
    void worker.terminate();
  }
}

function startWorker(module: URL, workerData: unknown): Worker {
  const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_HEAP_MIB_MAX };
  return new Worker(module, { workerData, resourceLimits });
}

/** A response, and the buffers to transfer to the requesting thread. */
export type Answer<Response> = { response: Response; transfer?: TransferListItem[] };

/** Serves the requests sent to this thread. */
export function answerRequests<Request, Response>(
  answer: (request: Request) => Answer<Response> | Promise<Answer<Response>>,
): void {
  assert(parentPort !== null, "this module must run in a worker thread");
  const port: MessagePort = parentPort;
  port.on("message", async (request: Request) => {
    try {
      const { response, transfer = [] } = await answer(request);
      port.postMessage({ response }, transfer);
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      port.postMessage({ failure: { ...error as object, name, message } });
    }
  });
  // Otherwise the next response would be mistaken for the response to this request.
  port.on("messageerror", (error) => {
    throw error;
  });
  port.postMessage({ ready: true });
}
