/**
 * Measures how long events take to reach followers. Single events are sent at a steady rate, and
 * timed from the receipt to the arrival of the line at each follower.
 */
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { Followers } from "./followers.ts";
import { LatencyHistogram } from "./latency_histogram.ts";
import { cpuSeconds } from "./process_stats.ts";
import { RawClient } from "./raw_client.ts";
import { ingestWorkload } from "./workloads.ts";

export interface DeliveryOptions {
  socketPath: string;
  serverPid: number;
  followers: number;
  eventsPerSecond: number;
  warmupMs: number;
  measureMs: number;
  /** The measurement ends early after this many events. */
  eventsMax: number;
}

export interface DeliveryResult {
  /** Events in the measured time. */
  events: number;
  seconds: number;
  /** Time from receipt to line, 0 if the line came first. One value per event and follower. */
  fromAck: LatencyHistogram;
  /** Time from the first byte of the request to the line. */
  fromSend: LatencyHistogram;
  serverCpuSeconds: number | null;
  clientCpuSeconds: number;
}

/** Timeout for lines after the last event. */
const DELIVERY_TIMEOUT_MS = 10_000;

/** @throws {Error} if a follower failed, or an event was not acknowledged or did not reach one. */
export async function measureDelivery(options: DeliveryOptions): Promise<DeliveryResult> {
  const { socketPath, followers: count } = options;
  const times = new Times();
  const receiver = () => times.receiver();
  const followers = await Followers.open({ socketPath, count, after: null, receiver });
  try {
    const client = await RawClient.connect(socketPath);
    try {
      return await Promise.race([followers.failed, sendAndMeasure(client, times, options)]);
    } finally {
      client.close();
    }
  } finally {
    followers.close();
  }
}

async function sendAndMeasure(
  client: RawClient,
  times: Times,
  options: DeliveryOptions,
): Promise<DeliveryResult> {
  const { serverPid, eventsPerSecond } = options;
  const workload = ingestWorkload("follow", 1);
  const events = (ms: number) => Math.max(1, Math.round(ms / 1000 * eventsPerSecond));
  const send = async (count: number) => {
    const startMs = performance.now();
    for (let number = 0; number < count; number++) {
      const waitMs = startMs + number * 1000 / eventsPerSecond - performance.now();
      if (waitMs > 0) await delay(waitMs);
      const sentMs = performance.now();
      times.sent(sentMs);
      workload.accept(await client.exchange(workload.next()));
      times.acknowledged(performance.now());
    }
    await allReceived(times, options.followers);
    return performance.now() - startMs;
  };
  if (options.warmupMs > 0) await send(events(options.warmupMs));
  times.openWindow();
  const serverCpu = cpuSeconds(serverPid);
  const clientCpu = process.cpuUsage();
  const measured = Math.min(events(options.measureMs), options.eventsMax);
  const elapsedMs = await send(measured);
  const { user, system } = process.cpuUsage(clientCpu);
  return {
    events: measured,
    seconds: elapsedMs / 1000,
    fromAck: times.fromAck,
    fromSend: times.fromSend,
    serverCpuSeconds: serverCpu === null ? null : cpuSeconds(serverPid)! - serverCpu,
    clientCpuSeconds: (user + system) / 1e6,
  };
}

async function allReceived(times: Times, followers: number): Promise<void> {
  const deadlineMs = performance.now() + DELIVERY_TIMEOUT_MS;
  while (times.received < times.events * followers) {
    if (performance.now() > deadlineMs) {
      const missing = times.events * followers - times.received;
      throw new Error(`${missing} lines did not arrive in ${DELIVERY_TIMEOUT_MS} ms`);
    }
    await delay(1);
  }
}

/** Records when each event was sent and acknowledged. Followers get events in order. */
class Times {
  readonly #sentMs: number[] = [];
  readonly #acknowledgedMs: number[] = [];
  fromAck: LatencyHistogram = new LatencyHistogram();
  fromSend: LatencyHistogram = new LatencyHistogram();
  /** Lines received by all followers. */
  received = 0;

  get events(): number {
    return this.#sentMs.length;
  }

  sent(ms: number): void {
    this.#sentMs.push(ms);
  }

  acknowledged(ms: number): void {
    this.#acknowledgedMs.push(ms);
  }

  /** Discards the measurements so far. Must be called when everything sent has arrived. */
  openWindow(): void {
    this.fromAck = new LatencyHistogram();
    this.fromSend = new LatencyHistogram();
  }

  /** Creates the receiver of one follower's events. */
  receiver(): (events: number) => void {
    let next = 0;
    return (events) => {
      const nowMs = performance.now();
      for (const end = next + events; next < end; next++) {
        this.fromAck.record(nowMs - (this.#acknowledgedMs[next] ?? nowMs));
        this.fromSend.record(nowMs - this.#sentMs[next]!);
      }
      this.received += events;
    };
  }
}
