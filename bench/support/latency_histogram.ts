/**
 * Latencies of any number of requests in constant memory. Each bucket is 1% wider than the last.
 */

const GROWTH = Math.log(1.01);
/** The last bucket starts above an hour. */
const BUCKETS = 2300;

export class LatencyHistogram {
  readonly #counts = new Uint32Array(BUCKETS);
  #total = 0;

  get count(): number {
    return this.#total;
  }

  record(latencyMs: number): void {
    const micros = Math.max(latencyMs * 1000, 1);
    const bucket = Math.min(Math.floor(Math.log(micros) / GROWTH), BUCKETS - 1);
    this.#counts[bucket] = this.#counts[bucket]! + 1;
    this.#total++;
  }

  /** Returns the latency in ms that a `share` (0 to 1) of requests did not exceed; 0 for none. */
  quantileMs(share: number): number {
    let left = Math.ceil(share * this.#total);
    if (left === 0) return 0;
    const bucket = this.#counts.findIndex((count) => (left -= count) <= 0);
    return Math.exp((bucket + 1) * GROWTH) / 1000;
  }
}
