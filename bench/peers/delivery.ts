/**
 * Measures the latency from a sender to one follower. Sends single events at a steady rate, each
 * timed from its first byte to its arrival. The service and the peers use the same loop.
 */
import { setTimeout as delay } from "node:timers/promises";
import { LatencyHistogram } from "../support/latency_histogram.ts";
import type { LoadTimes } from "./load.ts";
import { type Measurement, serverClock } from "./measurement.ts";

const EVENTS_PER_SECOND = 200;
/** Timeout for events to arrive after the last one was acknowledged. */
const ARRIVAL_TIMEOUT_MS = 10_000;

export interface Delivery {
  serverPid: number;
  /** Submits an event; resolves when it is acknowledged. */
  send(): Promise<void>;
  /** Rejects when the follower fails. */
  failed: Promise<never>;
}

/** Arrivals at the follower, which gets events in order. */
export class Arrivals {
  readonly #sentMs: number[] = [];
  latencies: LatencyHistogram = new LatencyHistogram();
  received = 0;

  get sent(): number {
    return this.#sentMs.length;
  }

  markSent(): void {
    this.#sentMs.push(performance.now());
  }

  /** Must be called whenever events have arrived. */
  markReceived(events: number): void {
    const nowMs = performance.now();
    for (let event = 0; event < events; event++) {
      this.latencies.record(nowMs - this.#sentMs[this.received++]!);
    }
  }
}

/** @throws {Error} if the follower failed, or an event was not acknowledged or did not arrive. */
export async function measureArrivals(
  delivery: Delivery,
  arrivals: Arrivals,
  times: LoadTimes,
): Promise<Measurement> {
  const count = (ms: number) => Math.max(1, Math.round(ms / 1000 * EVENTS_PER_SECOND));
  const run = async () => {
    await sendSteadily(count(times.warmupMs), delivery, arrivals);
    arrivals.latencies = new LatencyHistogram();
    const clock = serverClock(delivery.serverPid);
    const events = count(times.measureMs);
    await sendSteadily(events, delivery, arrivals);
    const { latencies } = arrivals;
    return {
      ...clock.stop(events),
      p50Ms: latencies.quantileMs(0.5),
      p99Ms: latencies.quantileMs(0.99),
    };
  };
  return await Promise.race([delivery.failed, run()]);
}

async function sendSteadily(count: number, delivery: Delivery, arrivals: Arrivals): Promise<void> {
  const startMs = performance.now();
  for (let number = 0; number < count; number++) {
    const waitMs = startMs + number * 1000 / EVENTS_PER_SECOND - performance.now();
    if (waitMs > 0) await delay(waitMs);
    arrivals.markSent();
    await delivery.send();
  }
  const deadlineMs = performance.now() + ARRIVAL_TIMEOUT_MS;
  while (arrivals.received < arrivals.sent) {
    if (performance.now() > deadlineMs) {
      const missing = arrivals.sent - arrivals.received;
      throw new Error(`${missing} events did not arrive in ${ARRIVAL_TIMEOUT_MS} ms`);
    }
    await delay(1);
  }
}
