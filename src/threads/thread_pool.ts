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
  /** The next message from the thread, while it is awaited. */
  #next: PromiseWithResolvers<Message<Response>> | null = null;
  #idleTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(module: URL, { start = startWorker, workerData, idleMs }: ThreadPoolOptions) {
    this.#start = () => {
      try {
        return start(module, workerData);
      } catch (error) {
        throw new Error(`the thread could not be started: ${(error as Error).message}`);
      }
    };
    this.#idleMs = idleMs;
  }

  /** Messages hold ArrayBuffers: Deno visits each element of a typed array, which takes seconds. */
  async request(message: Request, transfer: TransferListItem[]): Promise<Response> {
    if (this.#isClosed) throw new Error(CLOSED);
    clearTimeout(this.#idleTimer);
    const worker = this.#worker ?? await this.#run();
    worker.ref();
    try {
      const answering = this.#nextMessage();
      try {
        worker.postMessage(message, transfer);
      } catch (error) {
        // Cloning the message ran out of memory; the thread itself is unaffected.
        this.#next!.reject(new Error(`the request could not be sent: ${error}`));
      }
      const answer = await answering;
      if ("response" in answer) return answer.response;
      assert("failure" in answer, "a thread must be ready once");
      throw Object.assign(new Error(answer.failure.message), answer.failure);
    } finally {
      // An idle thread does not keep the process running.
      worker.unref();
      const end = () => this.#end(worker, "the thread was idle");
      const isIdle = this.#worker !== null && this.#idleMs !== undefined;
      if (isIdle) this.#idleTimer = setTimeout(end, this.#idleMs).unref();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
    this.#lose(this.#worker, CLOSED);
  }

  /** Starts a worker and waits until it runs. */
  async #run(): Promise<Worker> {
    try {
      const worker = this.#worker = this.#start();
      worker.on("message", (message: Message<Response>) => {
        if (worker !== this.#worker) return;
        assert(this.#next !== null, "a thread must respond once per request");
        this.#next.resolve(message);
      });
      worker.on("error", (error) => this.#lose(worker, (error as Error).message));
      worker.on("messageerror", (error) => this.#end(worker, error.message));
      worker.on("exit", () => this.#lose(worker, "the thread ended"));
      await this.#nextMessage();
      return worker;
    } catch (error) {
      throw this.#isClosed ? error : new ThreadUnavailableError((error as Error).message);
    }
  }

  async #nextMessage(): Promise<Message<Response>> {
    assert(this.#next === null, "a thread must have at most one request");
    this.#next = Promise.withResolvers();
    try {
      return await this.#next.promise;
    } finally {
      this.#next = null;
    }
  }

  #lose(worker: Worker | null, why: string): void {
    if (worker !== this.#worker) return;
    clearTimeout(this.#idleTimer);
    this.#worker = null;
    this.#next?.reject(new Error(this.#isClosed ? CLOSED : why));
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
