/**
 * Measures how long events take to reach a follower. Single events are sent at a steady rate, and
 * timed from the request and from the receipt to the arrival of the line.
 */
import { setTimeout as delay } from "node:timers/promises";
import { Followers } from "./followers.ts";
import { LatencyHistogram } from "./latency_histogram.ts";
import { RawClient } from "./raw_client.ts";
import { startUsage, type Usage } from "./usage.ts";
import { ingestWorkload } from "./workloads.ts";

export interface SendOptions {
  serverPid: number;
  warmupMs: number;
  measureMs: number;
}

export interface DeliveryOptions extends SendOptions {
  socketPath: string;
}

export interface DeliveryResult extends Usage {
  /** Events in the measured time. */
  events: number;
  /** Time from receipt to line, 0 if the line came first. */
  fromAck: LatencyHistogram;
  /** Time from the first byte of the request to the line. */
  fromSend: LatencyHistogram;
}

const EVENTS_PER_SECOND = 200;
/** Timeout for lines after the last event. */
const DELIVERY_TIMEOUT_MS = 10_000;

/** @throws {Error} if a follower failed, or an event was not acknowledged or did not reach it. */
export async function measureDelivery(options: DeliveryOptions): Promise<DeliveryResult> {
  const { socketPath } = options;
  const times = new DeliveryTimes();
  const receiver = () => times.receive;
  const followers = await Followers.open({ socketPath, count: 1, after: null, receiver });
  try {
    const client = await RawClient.connect(socketPath);
    const workload = ingestWorkload("follow", 1);
    const send = async () => workload.accept(await client.exchange(workload.next()));
    const sending = sendAndMeasure(send, times, options).finally(() => client.close());
    return await Promise.race([followers.failed, sending]);
  } finally {
    followers.close();
  }
}

/**
 * Sends events steadily and waits for each batch to arrive.
 * @param sendOne resolves when an event is acknowledged.
 * @param times is told of the arrivals.
 */
export async function sendAndMeasure(
  sendOne: () => Promise<unknown>,
  times: DeliveryTimes,
  { serverPid, warmupMs, measureMs }: SendOptions,
): Promise<DeliveryResult> {
  const send = async (count: number) => {
    const startMs = performance.now();
    for (let number = 0; number < count; number++) {
      const waitMs = startMs + number * 1000 / EVENTS_PER_SECOND - performance.now();
      if (waitMs > 0) await delay(waitMs);
      times.sentMs.push(performance.now());
      await sendOne();
      times.acknowledgedMs.push(performance.now());
    }
    await allReceived(times);
  };
  const eventsIn = (ms: number) => Math.max(1, Math.round(ms / 1000 * EVENTS_PER_SECOND));
  if (warmupMs > 0) await send(eventsIn(warmupMs));
  const fromAck = times.fromAck = new LatencyHistogram();
  const fromSend = times.fromSend = new LatencyHistogram();
  const usage = startUsage(serverPid);
  const events = eventsIn(measureMs);
  await send(events);
  return { ...usage(), events, fromAck, fromSend };
}

async function allReceived(times: DeliveryTimes): Promise<void> {
  const deadlineMs = performance.now() + DELIVERY_TIMEOUT_MS;
  const missing = () => times.sentMs.length - times.received;
  for (; missing() > 0; await delay(1)) {
    if (performance.now() < deadlineMs) continue;
    throw new Error(`${missing()} lines did not arrive in ${DELIVERY_TIMEOUT_MS} ms`);
  }
}

/** Records when each event was sent and acknowledged. The follower gets events in order. */
export class DeliveryTimes {
  readonly sentMs: number[] = [];
  readonly acknowledgedMs: number[] = [];
  fromAck: LatencyHistogram = new LatencyHistogram();
  fromSend: LatencyHistogram = new LatencyHistogram();
  /** Number of lines that have arrived. */
  received = 0;

  /** Records the arrival of the next events. */
  readonly receive = (events: number): void => {
    const nowMs = performance.now();
    for (const end = this.received + events; this.received < end; this.received++) {
      this.fromAck.record(nowMs - (this.acknowledgedMs[this.received] ?? nowMs));
      this.fromSend.record(nowMs - this.sentMs[this.received]!);
    }
  };
}
