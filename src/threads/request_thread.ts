/**
 * A worker thread that serves requests one at a time, in order. It starts with the first request;
 * if it dies, pending requests fail and the next request starts another thread. Nothing is sent
 * before the thread runs, so if none can be started, the caller still has the request's memory.
 * The module of the thread calls `answerRequests()`.
 */
import { clearTimeout, setTimeout } from "node:timers";
import { type MessagePort, parentPort, type TransferListItem, Worker } from "node:worker_threads";
import { assert } from "../assert.ts";

/** A thread did not start, died or was closed before it responded. */
export class ThreadLostError extends Error {
  override name = "ThreadLostError";
}

/** A thread died before it ran or received anything: the caller can do the work itself. */
export class ThreadUnavailableError extends ThreadLostError {
  override name = "ThreadUnavailableError";
}

export interface RequestThreadOptions {
  /** Becomes `workerData` in the thread. */
  workerData?: unknown;
  /** Idle timeout of the thread; none if absent. */
  idleMs?: number;
  /** Starts the worker; tests replace it. May throw. */
  start?: (module: URL, workerData: unknown) => Worker;
}

/** Messages of a thread: `ready` once, then one per request. */
type Message<Response> = { ready: true } | { response: Response } | { failure: string };

/** Young generation of a thread. The default costs 100 MiB more per thread for no speed. */
const YOUNG_HEAP_MIB_MAX = 12;

export class RequestThread<Request, Response> {
  readonly #module: URL;
  readonly #options: RequestThreadOptions;
  #worker: Worker | null = null;
  #pending: PromiseWithResolvers<Response>[] = [];
  /** Sends the requests from before the thread ran. */
  #unsent: (() => void)[] = [];
  #isRunning = false;
  #idleTimer: NodeJS.Timeout | null = null;
  /**
   * Whether a thread died before it ran, for example because the runtime may not read its module.
   * The caller must do the work itself.
   */
  isUnavailable = false;
  #isClosed = false;

  constructor(module: URL, options: RequestThreadOptions = {}) {
    this.#module = module;
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#pending.length === 0;
  }

  /**
   * Sends a request and returns its response.
   * @param transfer memory that moves to the thread.
   * @throws {ThreadUnavailableError}
   * @throws {ThreadLostError}
   * @throws {Error} with the message of the handler's error.
   */
  request(message: Request, transfer: TransferListItem[] = []): Promise<Response> {
    if (this.#isClosed) return Promise.reject(new ThreadLostError("the thread was closed"));
    this.#stopIdleTimer();
    const pending: PromiseWithResolvers<Response> = Promise.withResolvers();
    this.#pending.push(pending);
    const send = () => this.#send(pending, message, transfer);
    if (this.#isRunning) send();
    else this.#unsent.push(send);
    try {
      this.#worker ??= this.#start();
    } catch (error) {
      this.#lose(null, `the thread could not be started: ${(error as Error).message}`);
    }
    return pending.promise;
  }

  /** Ends the thread; pending requests fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end("the thread was closed");
  }

  #send(
    pending: PromiseWithResolvers<Response>,
    message: Request,
    transfer: TransferListItem[],
  ): void {
    try {
      this.#worker!.postMessage(message, transfer);
    } catch (error) {
      // Out of memory to clone the message; the thread itself is unaffected.
      this.#pending = this.#pending.filter((other) => other !== pending);
      pending.reject(new ThreadLostError(`the request could not be sent: ${error}`));
      if (this.isIdle) this.#startIdleTimer();
    }
  }

  #start(): Worker {
    const { start = startWorker, workerData } = this.#options;
    const worker = start(this.#module, workerData);
    worker.on("message", (message: Message<Response>) => {
      if (worker === this.#worker) this.#receive(message);
    });
    const lose = (why: string) => this.#lose(worker, why);
    worker.on("error", (error) => lose((error as Error).message));
    worker.on("messageerror", (error) => {
      lose(error.message);
      void worker.terminate();
    });
    worker.on("exit", () => lose("the thread ended"));
    return worker;
  }

  #receive(message: Message<Response>): void {
    if ("ready" in message) {
      this.#isRunning = true;
      for (const send of this.#unsent.splice(0)) send();
      return;
    }
    const pending = this.#pending.shift();
    assert(pending !== undefined, "a thread responds once per request");
    if ("response" in message) pending.resolve(message.response);
    else pending.reject(new Error(message.failure));
    if (this.isIdle) this.#startIdleTimer();
  }

  #lose(worker: Worker | null, why: string): void {
    if (worker !== this.#worker) return;
    const isUnavailable = !this.#isRunning && !this.#isClosed;
    this.isUnavailable ||= isUnavailable;
    this.#worker = null;
    this.#isRunning = false;
    this.#unsent = [];
    const failure = isUnavailable ? new ThreadUnavailableError(why) : new ThreadLostError(why);
    for (const { reject } of this.#pending.splice(0)) reject(failure);
  }

  async #end(why: string): Promise<void> {
    this.#stopIdleTimer();
    const worker = this.#worker;
    this.#lose(worker, why);
    await worker?.terminate();
  }

  #startIdleTimer(): void {
    const { idleMs } = this.#options;
    if (idleMs === undefined) return;
    this.#idleTimer = setTimeout(() => void this.#end("the thread was idle"), idleMs);
    this.#idleTimer.unref();
  }

  #stopIdleTimer(): void {
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer);
    this.#idleTimer = null;
  }
}

function startWorker(module: URL, workerData: unknown): Worker {
  const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_HEAP_MIB_MAX };
  return new Worker(module, { workerData, resourceLimits });
}

/** A response, and the memory that moves to the requesting thread. */
export interface Answer<Response> {
  response: Response;
  transfer?: TransferListItem[];
}

/** Serves the requests to this thread in order. */
export function answerRequests<Request, Response>(
  answer: (request: Request) => Answer<Response> | Promise<Answer<Response>>,
): void {
  assert(parentPort !== null, "this module runs in a worker thread");
  const port: MessagePort = parentPort;
  const send = (message: Message<Response>, transfer: TransferListItem[] = []) =>
    port.postMessage(message, transfer);
  let last = Promise.resolve();
  port.on("message", (request: Request) => {
    last = last.then(async () => {
      try {
        const { response, transfer } = await answer(request);
        send({ response }, transfer);
      } catch (error) {
        send({ failure: error instanceof Error ? error.message : String(error) });
      }
    });
  });
  // Without a response to this request, the next response would be matched to it.
  port.on("messageerror", (error) => {
    throw error;
  });
  send({ ready: true });
}
