/** Clock, timer and randomness for the client, injectable for tests. */
import { setTimeout } from "node:timers/promises";

/** A source of time and randomness. */
export interface Timing {
  /** Returns the time from a monotonic clock in milliseconds. */
  nowMs(): number;
  /** Resolves after `durationMs`; rejects with the signal's abort reason. */
  sleep(durationMs: number, signal: AbortSignal | undefined): Promise<void>;
  /** Returns a random number in [0, 1). */
  random(): number;
}

/** The system's clock, timer and randomness. */
export const SYSTEM_TIMING: Timing = {
  nowMs: () => performance.now(),
  async sleep(durationMs, signal) {
    try {
      await setTimeout(durationMs, undefined, signal && { signal });
    } catch {
      signal?.throwIfAborted();
    }
  },
  random: Math.random,
};
