/**
 * Drives a server with closed-loop clients and measures its throughput in a window after a warm-up.
 * All clients stay busy until the window ends.
 */
import type { Buffer } from "node:buffer";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { LatencyHistogram } from "./latency_histogram.ts";
import { cpuSeconds } from "./process_stats.ts";
import { RawClient } from "./raw_client.ts";
import type { RawResponse } from "./response_parser.ts";

/** The requests from one client, and checks of the responses. */
export interface Workload {
  next(): Buffer;
  /** Checks a response, and ends the run if it is wrong. @returns the number of its events. */
  accept(response: RawResponse): number;
  /** Returns the size in bytes of whichever is measured, the request or the response. */
  bytes(request: Buffer, response: RawResponse): number;
}

export interface LoadOptions {
  socketPath: string;
  serverPid: number;
  /** One per client. */
  workloads: Workload[];
  warmupMs: number;
  measureMs: number;
  /** The run ends early after this many events, including those in the warm-up. */
  eventsMax: number;
}

export interface LoadResult {
  requests: number;
  events: number;
  bytes: number;
  seconds: number;
  latencies: LatencyHistogram;
  serverCpuSeconds: number | null;
  clientCpuSeconds: number;
  /** For the whole run, including the time outside the window. */
  eventsInAll: number;
}

/**
 * Runs the workloads concurrently, each on its own connection.
 * @throws {Error} if a connection failed or a response is not what its workload expects.
 */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { socketPath, workloads } = options;
  const clients = await Promise.all(workloads.map(() => RawClient.connect(socketPath)));
  const run = new Run(options.eventsMax);
  try {
    const measuring = measure(run, options);
    await Promise.all(clients.map((client, index) => drive(client, workloads[index]!, run)));
    return { ...await measuring, eventsInAll: run.eventsInAll };
  } finally {
    run.stop();
    for (const client of clients) client.close();
  }
}

/** State shared by all clients in a run. */
class Run {
  readonly #eventsMax: number;
  readonly #stop = new AbortController();
  #window: Window | null = null;
  eventsInAll = 0;

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
    this.eventsInAll += events;
    this.#window?.count(events, bytes, latencyMs);
    if (this.eventsInAll >= this.#eventsMax) this.stop();
  }

  openWindow(serverPid: number): void {
    this.#window = new Window(serverPid);
  }

  closeWindow(): Omit<LoadResult, "eventsInAll"> {
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
  readonly #serverPid: number;
  readonly #startMs = performance.now();
  readonly #serverCpuSeconds: number | null;
  readonly #clientCpuSeconds = ownCpuSeconds();
  readonly #latencies = new LatencyHistogram();
  #events = 0;
  #bytes = 0;

  constructor(serverPid: number) {
    this.#serverPid = serverPid;
    this.#serverCpuSeconds = cpuSeconds(serverPid);
  }

  count(events: number, bytes: number, latencyMs: number): void {
    this.#events += events;
    this.#bytes += bytes;
    this.#latencies.record(latencyMs);
  }

  close(): Omit<LoadResult, "eventsInAll"> {
    const serverCpu = cpuSeconds(this.#serverPid);
    return {
      requests: this.#latencies.count,
      events: this.#events,
      bytes: this.#bytes,
      seconds: (performance.now() - this.#startMs) / 1000,
      latencies: this.#latencies,
      serverCpuSeconds: serverCpu === null ? null : serverCpu - (this.#serverCpuSeconds ?? 0),
      clientCpuSeconds: ownCpuSeconds() - this.#clientCpuSeconds,
    };
  }
}

/** Measures a window. Afterwards, clients stop one by one, so later responses do not count. */
async function measure(run: Run, options: LoadOptions) {
  if (options.warmupMs > 0) await run.pause(options.warmupMs);
  run.openWindow(options.serverPid);
  await run.pause(options.measureMs);
  const result = run.closeWindow();
  run.stop();
  return result;
}

function drive(client: RawClient, workload: Workload, run: Run): Promise<void> {
  return new Promise((resolve, reject) => {
    let request: Buffer;
    let sentMs = 0;
    const sendNext = () => {
      if (run.isStopped) return resolve();
      request = workload.next();
      sentMs = performance.now();
      client.send(request, take, reject);
    };
    const take = (response: RawResponse) => {
      const latencyMs = performance.now() - sentMs;
      try {
        const events = workload.accept(response);
        run.count(events, workload.bytes(request, response), latencyMs);
      } catch (error) {
        return reject(error);
      }
      sendNext();
    };
    sendNext();
  });
}

function ownCpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}
