/**
 * Drives a server with closed-loop clients and measures its throughput in a window after a warm-up.
 * All clients stay busy until the window ends.
 */
import type { Buffer } from "node:buffer";
import { setTimeout as delay } from "node:timers/promises";
import { LatencyHistogram } from "./latency_histogram.ts";
import { RawClient } from "./raw_client.ts";
import type { RawResponse } from "./response_parser.ts";
import { startUsage, type Usage } from "./usage.ts";

/** The requests from one client, and checks of the responses. */
export interface Workload {
  next(): Buffer;
  /** Checks a response, and ends the run if it is wrong. @returns the number of its events. */
  accept(response: RawResponse): number;
}

/** Sends a client's next request, and calls back when its response has arrived. */
export type Exchange = (done: (events: number) => void, failed: (error: unknown) => void) => void;

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
  events: number;
  latencies: LatencyHistogram;
}

/**
 * Runs the workloads concurrently, each on its own connection.
 * @throws {Error} if a connection failed or a response is not what its workload expects.
 */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { socketPath, workloads } = options;
  const clients = await Promise.all(workloads.map(() => RawClient.connect(socketPath)));
  const exchanges = clients.map((client, index): Exchange => {
    const { next, accept } = workloads[index]!;
    // What `accept` throws is a failure of the client.
    return (done, failed) => client.send(next(), (response) => done(accept(response)), failed);
  });
  try {
    return await runLoops(exchanges, options);
  } finally {
    for (const client of clients) client.close();
  }
}

/** Runs clients of any protocol concurrently. @throws {Error} if an exchange failed. */
export async function runLoops(
  exchanges: Exchange[],
  { serverPid, warmupMs = 0, measureMs, eventsMax = Infinity }: LoopOptions,
): Promise<LoadResult> {
  const stop = new AbortController();
  const newWindow = () => ({ events: 0, latencies: new LatencyHistogram() });
  let window = newWindow();
  let eventsInAll = 0;
  const count = (events: number, latencyMs: number) => {
    eventsInAll += events;
    window.events += events;
    window.latencies.record(latencyMs);
    if (eventsInAll >= eventsMax) stop.abort();
  };
  const measure = async () => {
    if (warmupMs > 0) await pause(warmupMs, stop.signal);
    const measured = window = newWindow();
    const usage = startUsage(serverPid);
    await pause(measureMs, stop.signal);
    const used = usage();
    // Clients stop one by one, so later responses do not count.
    window = newWindow();
    stop.abort();
    return { ...used, ...measured };
  };
  try {
    const measuring = measure();
    await Promise.all(exchanges.map((exchange) => drive(exchange, stop.signal, count)));
    return await measuring;
  } finally {
    stop.abort();
  }
}

/** Waits for `ms`, or until the run ends. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch((error) => {
    if (!signal.aborted) throw error;
  });
}

/** Repeats an exchange until the run ends. */
function drive(
  exchange: Exchange,
  stop: AbortSignal,
  count: (events: number, latencyMs: number) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let sentMs = 0;
    const sendNext = () => {
      if (stop.aborted) return resolve();
      sentMs = performance.now();
      exchange(done, reject);
    };
    const done = (events: number) => {
      count(events, performance.now() - sentMs);
      sendNext();
    };
    sendNext();
  });
}
