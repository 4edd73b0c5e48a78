/** Clock, timer and randomness of the client, injectable for tests. */

/** A source of time and randomness. */
export interface Timing {
  /** Returns milliseconds of a monotonic clock. */
  nowMs(): number;
  /** Resolves after `durationMs`; rejects with the reason of an aborted signal. */
  sleep(durationMs: number, signal: AbortSignal | undefined): Promise<void>;
  /** Returns a random number in [0, 1). */
  random(): number;
}

/** The system's clock, timer and randomness. */
export const SYSTEM_TIMING: Timing = {
  nowMs: () => performance.now(),
  sleep,
  random: Math.random,
};

function sleep(durationMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, durationMs);
    const abort = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}
