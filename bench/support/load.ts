/**
 * Drives a server with closed-loop clients and measures its throughput in a window after a warm-up.
 * All clients stay busy until the window ends.
 */
import type { Buffer } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import { LatencyHistogram } from "./latency_histogram.ts";
import { RawClient } from "./raw_client.ts";
import type { RawResponse } from "./response_parser.ts";
import { startUsage, type Usage, usageOfServer } from "./usage.ts";

/** The requests from one client, and checks of the responses. */
export interface Workload {
  next(): Buffer;
  /** Checks a response, and ends the run if it is wrong. @returns the number of its events. */
  accept(response: RawResponse): number;
  /** Returns the size in bytes of whichever is measured, the request or the response. */
  bytes(request: Buffer, response: RawResponse): number;
}

/** Sends a client's next request, and calls back when its response has arrived. */
export type Exchange = (
  done: (events: number, bytes: number) => void,
  failed: (error: unknown) => void,
) => void;

export interface LoopOptions {
  serverPid: number;
  /** Default: no warm-up. */
  warmupMs?: number;
  measureMs: number;
  /** The run ends early after this many events, including those in the warm-up. */
  eventsMax?: number;
}

export interface LoadOptions extends LoopOptions {
  socketPath: string;
  /** One per client. */
  workloads: Workload[];
}

export interface LoadResult extends Usage {
  requests: number;
  events: number;
  bytes: number;
  latencies: LatencyHistogram;
}

/**
 * Runs the workloads concurrently, each on its own connection.
 * @throws {Error} if a connection failed or a response is not what its workload expects.
 */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { socketPath, workloads } = options;
  const clients = await Promise.all(workloads.map(() => RawClient.connect(socketPath)));
  const exchanges = clients.map((client, index) => exchangeOf(client, workloads[index]!));
  try {
    return await runLoops(exchanges, options);
  } finally {
    for (const client of clients) client.close();
  }
}

/** Runs clients of any protocol concurrently. @throws {Error} if an exchange failed. */
export async function runLoops(exchanges: Exchange[], options: LoopOptions): Promise<LoadResult> {
  const run = new Run(options.eventsMax ?? Infinity);
  try {
    const measuring = measure(run, options);
    await Promise.all(exchanges.map((exchange) => drive(exchange, run)));
    return await measuring;
  } finally {
    run.stop();
  }
}

/** State shared by all clients in a run. */
class Run {
  readonly #eventsMax: number;
  readonly #stop = new AbortController();
  #window: Window | null = null;
  #eventsInAll = 0;

  constructor(eventsMax: number) {
    this.#eventsMax = eventsMax;
  }

  get isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  stop(): void {
    this.#stop.abort();
  }

  count(events: number, bytes: number, latencyMs: number): void {
    this.#eventsInAll += events;
    this.#window?.count(events, bytes, latencyMs);
    if (this.#eventsInAll >= this.#eventsMax) this.stop();
  }

  openWindow(serverPid: number): void {
    this.#window = new Window(serverPid);
  }

  closeWindow(): LoadResult {
    const window = this.#window!;
    this.#window = null;
    return window.close();
  }

  /** Waits for `ms`, or until the run ends. */
  async pause(ms: number): Promise<void> {
    const { signal } = this.#stop;
    await delay(ms, undefined, { signal }).catch((error) => {
      if (!signal.aborted) throw error;
    });
  }
}

/** The measured window, with its counts and resource usage. */
class Window {
  readonly #usage: () => Usage;
  readonly #latencies = new LatencyHistogram();
  #events = 0;
  #bytes = 0;

  constructor(serverPid: number) {
    this.#usage = startUsage(usageOfServer(serverPid));
  }

  count(events: number, bytes: number, latencyMs: number): void {
    this.#events += events;
    this.#bytes += bytes;
    this.#latencies.record(latencyMs);
  }

  close(): LoadResult {
    return {
      ...this.#usage(),
      requests: this.#latencies.count,
      events: this.#events,
      bytes: this.#bytes,
      latencies: this.#latencies,
    };
  }
}

/** Measures a window. Afterwards, clients stop one by one, so later responses do not count. */
async function measure(run: Run, options: LoopOptions) {
  if (options.warmupMs !== undefined) await run.pause(options.warmupMs);
  run.openWindow(options.serverPid);
  await run.pause(options.measureMs);
  const result = run.closeWindow();
  run.stop();
  return result;
}

function drive(exchange: Exchange, run: Run): Promise<void> {
  return new Promise((resolve, reject) => {
    let sentMs = 0;
    const sendNext = () => {
      if (run.isStopped) return resolve();
      sentMs = performance.now();
      exchange(done, reject);
    };
    const done = (events: number, bytes: number) => {
      run.count(events, bytes, performance.now() - sentMs);
      sendNext();
    };
    sendNext();
  });
}

function exchangeOf(client: RawClient, workload: Workload): Exchange {
  return (done, failed) => {
    const request = workload.next();
    client.send(request, (response) => {
      let events: number;
      try {
        events = workload.accept(response);
      } catch (error) {
        return failed(error);
      }
      done(events, workload.bytes(request, response));
    }, failed);
  };
}
