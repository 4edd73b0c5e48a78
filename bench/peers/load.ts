/**
 * Drives any server with closed-loop clients and measures over a window after a warm-up. All
 * clients stay busy until the window ends. The service and the peers use the same loop.
 */
import { setTimeout as delay } from "node:timers/promises";
import { LatencyHistogram } from "../support/latency_histogram.ts";
import { type Measurement, serverClock } from "./measurement.ts";

/** One client under load. */
export interface LoadClient {
  /** Sends the next request; calls `done` with the number of events that its response covers. */
  exchange(done: (events: number) => void, failed: (error: Error) => void): void;
  close(): void;
}

export interface LoadTimes {
  warmupMs: number;
  measureMs: number;
}

/** Counts for the measured window; null outside it. */
interface Counts {
  events: number;
  latencies: LatencyHistogram;
}

/**
 * Runs the clients concurrently and closes them.
 * @throws {Error} if a connection failed or a response was wrong.
 */
export async function measureLoad(
  clients: LoadClient[],
  serverPid: number,
  times: LoadTimes,
): Promise<Measurement> {
  const run: { counts: Counts | null; isOver: boolean } = { counts: null, isOver: false };
  const driving = Promise.all(clients.map((client) => drive(client, run)));
  try {
    // A failed client ends the wait early.
    await Promise.race([driving, delay(times.warmupMs)]);
    const counts = { events: 0, latencies: new LatencyHistogram() };
    run.counts = counts;
    const clock = serverClock(serverPid);
    await Promise.race([driving, delay(times.measureMs)]);
    const measurement = clock.stop(counts.events);
    run.counts = null;
    run.isOver = true;
    await driving;
    const p50Ms = counts.latencies.quantileMs(0.5);
    return { ...measurement, p50Ms, p99Ms: counts.latencies.quantileMs(0.99) };
  } finally {
    run.isOver = true;
    for (const client of clients) client.close();
  }
}

function drive(client: LoadClient, run: { counts: Counts | null; isOver: boolean }): Promise<void> {
  return new Promise((resolve, reject) => {
    let sentMs = 0;
    const done = (events: number) => {
      const { counts } = run;
      if (counts !== null) {
        counts.events += events;
        counts.latencies.record(performance.now() - sentMs);
      }
      sendNext();
    };
    const sendNext = () => {
      if (run.isOver) return resolve();
      sentMs = performance.now();
      client.exchange(done, reject);
    };
    sendNext();
  });
}
