/** The figures of one measurement. */
import type { LatencyHistogram } from "../support/latency_histogram.ts";
import { startUsage, type Usage } from "../support/usage.ts";

/** A figure is null if it was not measured or is unknown. */
export interface Measurement {
  eventsPerSecond: number;
  p50Ms: number | null;
  p99Ms: number | null;
  /** Server CPU milliseconds per 1,000 events. */
  serverCpuMsPer1000: number | null;
  /** The load generator's share of a core. Near 1, it is the bottleneck. */
  clientShare: number | null;
}

export interface LoadTimes {
  warmupMs: number;
  measureMs: number;
}

export function measurementOf(
  measured: Usage & { events: number; latencies?: LatencyHistogram },
): Measurement {
  const { events, latencies, seconds, serverCpuSeconds: server, clientCpuSeconds } = measured;
  return {
    eventsPerSecond: events / seconds,
    p50Ms: latencies?.quantileMs(0.5) ?? null,
    p99Ms: latencies?.quantileMs(0.99) ?? null,
    serverCpuMsPer1000: server === null || events === 0 ? null : server / events * 1e6,
    clientShare: clientCpuSeconds / seconds,
  };
}

/** Measures the rate of work other than a load. */
export async function measureWork(
  events: number,
  work: () => Promise<unknown>,
): Promise<Measurement> {
  const startMs = performance.now();
  await work();
  const eventsPerSecond = events / (performance.now() - startMs) * 1000;
  return { eventsPerSecond, p50Ms: null, p99Ms: null, serverCpuMsPer1000: null, clientShare: null };
}

/** Requests per client in the short run that warms up the server and determines the rate. */
const PILOT_REQUESTS = 30;

/**
 * Drives a peer with its own load generator, which costs less than a client in this process.
 * @param run makes each client send that many requests; the rate excludes the tool's startup.
 */
export async function measureTool(
  { serverPid, clients, requestEvents }: ToolLoad,
  { measureMs }: LoadTimes,
  run: (requests: number) => Promise<Partial<Measurement> & { eventsPerSecond: number }>,
): Promise<Measurement> {
  const { eventsPerSecond } = await run(PILOT_REQUESTS);
  const requests = Math.ceil(eventsPerSecond * measureMs / 1000 / clients / requestEvents);
  const usage = startUsage(serverPid);
  const report = await run(requests);
  const events = requests * clients * requestEvents;
  return { ...measurementOf({ ...usage(), events }), ...report };
}

export interface ToolLoad {
  serverPid: number;
  clients: number;
  requestEvents: number;
}
