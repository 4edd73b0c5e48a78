/**
 * Measures the latency of batch delivery to followers, with many batches in flight. A batch has
 * reached a follower when a record includes the batch's last event. Deliveries and receipts arrive
 * in any order.
 */
import type { OnEvents } from "../support/follower_client.ts";
import { LatencyHistogram } from "../support/latency_histogram.ts";

interface SentBatch {
  lastEventId: string;
  sentMs: number;
}

interface Arrival {
  /** All events up to this one have arrived. */
  throughEventId: string;
  atMs: number;
}

/** Number of arrivals kept per follower, for receipts that come later. */
const ARRIVALS_MAX = 4096;

export class Deliveries {
  readonly #followers: Follower[] = [];
  #latencies = new LatencyHistogram();

  /** Creates the receiver of a new follower's events. */
  receiver(): OnEvents {
    const follower = new Follower((latencyMs) => this.#latencies.record(latencyMs));
    this.#followers.push(follower);
    return (_, recordEnd) => {
      const through = throughEventId(withoutChunks(recordEnd.toString("latin1")));
      follower.arrived(through, performance.now());
    };
  }

  /** Records the receipt of a batch. */
  committed(batch: SentBatch): void {
    for (const follower of this.#followers) follower.committed(batch);
  }

  /** Number of acknowledged batches that have not arrived, summed over the followers. */
  get missing(): number {
    return this.#followers.reduce((total, { missing }) => total + missing, 0);
  }

  /** Returns the latencies from sending to arrival, per batch and follower, since the last call. */
  take(): LatencyHistogram {
    const latencies = this.#latencies;
    this.#latencies = new LatencyHistogram();
    return latencies;
  }
}

class Follower {
  readonly #record: (latencyMs: number) => void;
  /** Arrivals in order. */
  readonly #arrivals: Arrival[] = [];
  /** Batches whose last event has not arrived. */
  #waiting: SentBatch[] = [];

  constructor(record: (latencyMs: number) => void) {
    this.#record = record;
  }

  get missing(): number {
    return this.#waiting.length;
  }

  arrived(throughEventId: string, atMs: number): void {
    this.#arrivals.push({ throughEventId, atMs });
    if (this.#arrivals.length > ARRIVALS_MAX) this.#arrivals.splice(0, ARRIVALS_MAX / 2);
    const stillWaiting: SentBatch[] = [];
    for (const batch of this.#waiting) {
      if (batch.lastEventId <= throughEventId) this.#record(atMs - batch.sentMs);
      else stillWaiting.push(batch);
    }
    this.#waiting = stillWaiting;
  }

  committed(batch: SentBatch): void {
    const { lastEventId, sentMs } = batch;
    const latest = this.#arrivals.at(-1);
    if (latest === undefined || latest.throughEventId < lastEventId) {
      this.#waiting.push(batch);
      return;
    }
    let place = this.#arrivals.length - 1;
    while (place > 0 && this.#arrivals[place - 1]!.throughEventId >= lastEventId) place--;
    this.#record(this.#arrivals[place]!.atMs - sentMs);
  }
}

/** Removes chunk boundaries, which can be anywhere in a record. Records contain no CR. */
function withoutChunks(text: string): string {
  return text.replaceAll(/\r\n[0-9a-f]+\r\n/g, "");
}

function throughEventId(recordEnd: string): string {
  const id = /"next_after":"([0-9a-f-]+)","snapshot_through_event_id":"[0-9a-f-]+"\}\n\r\n$/
    .exec(recordEnd)?.[1];
  if (id === undefined) throw new Error(`not the end of a follow record: ${recordEnd}`);
  return id;
}
