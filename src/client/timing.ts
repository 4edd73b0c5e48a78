/** Clock, pauses and chance, as one thing, so that tests bring their own. */

/** What the client asks of time and chance. */
export interface Timing {
  /** Milliseconds since any fixed moment; never goes back. */
  nowMs(): number;
  /** Resolves after a pause; rejects with the signal's reason when that is aborted. */
  sleep(durationMs: number, signal: AbortSignal | undefined): Promise<void>;
  /** A number from 0 to below 1. */
  random(): number;
}

/** The real ones. */
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
