/**
 * Keeps a thread from taking a processor for itself: after each few milliseconds of work it sleeps
 * as long as it has worked. Whoever shares the processor waits for a slice of work instead of the
 * system's, which can be a tenth of a second.
 */
import { PACE_PAUSE_MS_MAX, PACE_WORK_MS } from "../limits.ts";

/** To be called often; sleeps when it is time to. */
export type Pace = () => void;

/** Never sleeps. */
export const FULL_SPEED: Pace = () => {};

/** For a thread that nobody waits for: it really stands still. */
export function halfSpeed(): Pace {
  const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let sinceMs = performance.now();
  return () => {
    const workedMs = performance.now() - sinceMs;
    if (workedMs < PACE_WORK_MS) return;
    Atomics.wait(never, 0, 0, Math.min(workedMs, PACE_PAUSE_MS_MAX));
    sinceMs = performance.now();
  };
}
