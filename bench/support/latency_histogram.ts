/** Latencies of any number of requests in constant memory, accurate to within 0.1%. */
import { createHistogram } from "node:perf_hooks";

export class LatencyHistogram {
  readonly #micros = createHistogram();

  get count(): number {
    return this.#micros.count;
  }

  /** The highest latency; 0 for none. */
  get slowestMs(): number {
    return this.count === 0 ? 0 : this.#micros.max / 1000;
  }

  record(latencyMs: number): void {
    this.#micros.record(Math.max(Math.round(latencyMs * 1000), 1));
  }

  /** Returns the latency in ms that a `share` (0 to 1) of requests did not exceed; 0 for none. */
  quantileMs(share: number): number {
    return this.#micros.percentile(share * 100) / 1000;
  }
}
