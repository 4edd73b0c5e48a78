/**
 * Sends requests at a fixed rate, regardless of outstanding responses. Latency is measured from
 * the time a request was due, so a slow response adds to the latency of those queued behind it.
 */
import { setTimeout as delay } from "node:timers/promises";
import { LatencyHistogram } from "./latency_histogram.ts";
import type { Workload } from "./load.ts";
import { RawClient } from "./raw_client.ts";

export interface OpenLoopOptions {
  socketPath: string;
  /** One per connection. A request waits if all connections are busy when it is due. */
  workloads: Workload[];
  requestsPerSecond: number;
  /** Warm-up requests, at the same rate. */
  warmupMs: number;
  measureMs: number;
}

interface Connection {
  client: RawClient;
  workload: Workload;
}

/** @throws {Error} if a connection failed or a response was not what its workload expects. */
export async function runOpenLoop(options: OpenLoopOptions): Promise<LatencyHistogram> {
  const idle: Connection[] = await Promise.all(options.workloads.map(async (workload) => (
    { client: await RawClient.connect(options.socketPath), workload }
  )));
  const clients = idle.map(({ client }) => client);
  try {
    return await new OpenLoop(idle, options).run();
  } finally {
    for (const client of clients) client.close();
  }
}

class OpenLoop {
  readonly #idle: Connection[];
  readonly #options: OpenLoopOptions;
  readonly #latencies = new LatencyHistogram();
  /** Due times of the requests that are waiting for a connection. */
  readonly #due: number[] = [];
  #measuredFromMs = 0;
  #underWay = 0;
  #lastIsSent = false;
  readonly #over = Promise.withResolvers<LatencyHistogram>();

  constructor(idle: Connection[], options: OpenLoopOptions) {
    this.#idle = idle;
    this.#options = options;
  }

  /** @returns the latencies of the requests that were due during the measurement. */
  async run(): Promise<LatencyHistogram> {
    const { requestsPerSecond, warmupMs, measureMs } = this.#options;
    const sending = this.#sendAll(requestsPerSecond, warmupMs, measureMs);
    sending.catch(this.#over.reject);
    return await this.#over.promise;
  }

  async #sendAll(requestsPerSecond: number, warmupMs: number, measureMs: number): Promise<void> {
    const startMs = performance.now();
    this.#measuredFromMs = startMs + warmupMs;
    const count = Math.max(1, Math.round((warmupMs + measureMs) / 1000 * requestsPerSecond));
    for (let number = 0; number < count;) {
      const nowMs = performance.now();
      for (; number < count; number++) {
        const dueMs = startMs + number * 1000 / requestsPerSecond;
        if (dueMs > nowMs) break;
        this.#due.push(dueMs);
        this.#underWay += 1;
      }
      this.#sendDue();
      await delay(1);
    }
    if (this.#underWay === 0) this.#over.resolve(this.#latencies);
    else this.#lastIsSent = true;
  }

  #sendDue(): void {
    while (this.#idle.length > 0 && this.#due.length > 0) {
      this.#send(this.#idle.pop()!, this.#due.shift()!);
    }
  }

  #send(connection: Connection, dueMs: number): void {
    const { client, workload } = connection;
    client.send(workload.next(), (response) => {
      try {
        workload.accept(response);
      } catch (error) {
        return this.#over.reject(error);
      }
      if (dueMs >= this.#measuredFromMs) this.#latencies.record(performance.now() - dueMs);
      this.#underWay -= 1;
      this.#idle.push(connection);
      this.#sendDue();
      if (this.#lastIsSent && this.#underWay === 0) this.#over.resolve(this.#latencies);
    }, this.#over.reject);
  }
}
