/**
 * Measures how long events take to reach followers. Single events are sent at a steady rate, and
 * timed from the receipt to the arrival of the line at each follower.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Followers } from "./followers.ts";
import { LatencyHistogram } from "./latency_histogram.ts";
import { RawClient } from "./raw_client.ts";
import { startUsage, type Usage } from "./usage.ts";
import { ingestWorkload } from "./workloads.ts";

export interface SendOptions {
  serverPid: number;
  followers: number;
  eventsPerSecond: number;
  warmupMs: number;
  measureMs: number;
}

export interface DeliveryOptions extends SendOptions {
  socketPath: string;
}

export interface DeliveryResult extends Usage {
  /** Events in the measured time. */
  events: number;
  /** Time from receipt to line, 0 if the line came first. One value per event and follower. */
  fromAck: LatencyHistogram;
  /** Time from the first byte of the request to the line. */
  fromSend: LatencyHistogram;
}

/** Timeout for lines after the last event. */
const DELIVERY_TIMEOUT_MS = 10_000;

/** @throws {Error} if a follower failed, or an event was not acknowledged or did not reach one. */
export async function measureDelivery(options: DeliveryOptions): Promise<DeliveryResult> {
  const { socketPath, followers: count } = options;
  const times = new DeliveryTimes();
  const receiver = () => times.receiver();
  const followers = await Followers.open({ socketPath, count, after: null, receiver });
  try {
    const client = await RawClient.connect(socketPath);
    try {
      const workload = ingestWorkload("follow", 1);
      const send = async () => {
        workload.accept(await client.exchange(workload.next()));
      };
      return await Promise.race([followers.failed, sendAndMeasure(send, times, options)]);
    } finally {
      client.close();
    }
  } finally {
    followers.close();
  }
}

/**
 * Sends events steadily and waits for each batch to arrive.
 * @param sendOne resolves when an event is acknowledged.
 * @param times is told of the arrivals by its receivers.
 */
export async function sendAndMeasure(
  sendOne: () => Promise<unknown>,
  times: DeliveryTimes,
  options: SendOptions,
): Promise<DeliveryResult> {
  const { serverPid, eventsPerSecond } = options;
  const events = (ms: number) => Math.max(1, Math.round(ms / 1000 * eventsPerSecond));
  const send = async (count: number) => {
    const startMs = performance.now();
    for (let number = 0; number < count; number++) {
      const waitMs = startMs + number * 1000 / eventsPerSecond - performance.now();
      if (waitMs > 0) await delay(waitMs);
      times.sent(performance.now());
      await sendOne();
      times.acknowledged(performance.now());
    }
    await allReceived(times, options.followers);
  };
  if (options.warmupMs > 0) await send(events(options.warmupMs));
  times.openWindow();
  const usage = startUsage(serverPid);
  const measured = events(options.measureMs);
  await send(measured);
  return { ...usage(), events: measured, fromAck: times.fromAck, fromSend: times.fromSend };
}

async function allReceived(times: DeliveryTimes, followers: number): Promise<void> {
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
export class DeliveryTimes {
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
