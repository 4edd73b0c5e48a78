/**
 * Appends batches at a fixed rate, regardless of the server. If all clients are busy when a batch
 * is due, the batch is late, and its latency is measured from the time it was due.
 */
import { setTimeout as delay } from "node:timers/promises";
import { BulkBatches } from "../scale/history.ts";
import { ask } from "../support/exchange.ts";
import { LatencyHistogram } from "../support/latency_histogram.ts";
import { RawClient } from "../support/raw_client.ts";

export interface ProducerOptions {
  socketPath: string;
  clients: number;
  batchEvents: number;
  eventsPerSecond: number;
  /** Number of the first batch. */
  firstBatch: number;
  /** Called for each receipt, with the time from which the batch's latency is measured. */
  onCommitted: (batch: { lastEventId: string; sentMs: number }) => void;
}

/** Appends since the last report. */
export interface Appended {
  events: number;
  latencies: LatencyHistogram;
}

const COMMITTED = '"status":"committed"';

export class Producers {
  readonly #options: ProducerOptions;
  readonly #startMs = performance.now();
  #slots = 0;
  #isStopped = false;
  #appended: Appended = { events: 0, latencies: new LatencyHistogram() };
  /** Rejects when an append fails; resolves after `stop()` once all appends have completed. */
  readonly ended: Promise<void>;

  constructor(options: ProducerOptions) {
    this.#options = options;
    this.ended = Promise.all(Array.from({ length: options.clients }, () => this.#produce()))
      .then(() => {});
    // Awaited later by the caller.
    this.ended.catch(() => {});
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.ended;
  }

  take(): Appended {
    const appended = this.#appended;
    this.#appended = { events: 0, latencies: new LatencyHistogram() };
    return appended;
  }

  async #produce(): Promise<void> {
    const { socketPath, batchEvents, eventsPerSecond, firstBatch, onCommitted } = this.#options;
    const client = await RawClient.connect(socketPath);
    const batches = new BulkBatches(batchEvents);
    const intervalMs = batchEvents * 1000 / eventsPerSecond;
    while (!this.#isStopped) {
      const slot = this.#slots++;
      const dueMs = this.#startMs + slot * intervalMs;
      const sentMs = await untilDue(dueMs);
      const request = batches.request(firstBatch + slot);
      const { response } = await ask(client, { request, expected: COMMITTED });
      this.#appended.events += batchEvents;
      this.#appended.latencies.record(performance.now() - sentMs);
      const lastEventId = /"last_event_id":"([0-9a-f-]+)"/.exec(`${response.bodyEnd}`)![1]!;
      onCommitted({ lastEventId, sentMs });
    }
    client.close();
  }
}

/**
 * @returns the time from which the latency of a request sent now is measured. This is the current
 *   time if the client waited for its timer, which has millisecond resolution. Otherwise, it is the
 *   due time.
 */
async function untilDue(dueMs: number): Promise<number> {
  const waitMs = dueMs - performance.now();
  if (waitMs <= 0) return dueMs;
  await delay(waitMs);
  return performance.now();
}
