/**
 * Keeps the sealing thread from monopolizing a core. The thread sleeps after each row group; the
 * smaller the backlog, the longer it sleeps. Ingest and reads then wait for a few milliseconds of
 * sealing instead of a scheduler time slice, which can be a tenth of a second.
 */
/**
 * The thread is unthrottled at this backlog and above. Below it, its duty cycle grows with the
 * backlog, so that sealing keeps pace with steady ingest and catches up before batches wait for it.
 */
export const UNTHROTTLED_BACKLOG: number = 1 / 2;

/** The thread's duty cycle when the backlog is small. */
const WORK_SHARE_MIN = 1 / 8;

const SLEEP_MS_MAX = 100;

/**
 * Creates the throttle for a task that starts now.
 * @param backlog see `Sealer.backlog`, or that of merges. It may change in shared memory.
 * @returns a function that blocks the thread in proportion to the work since its last call.
 */
export function startThrottle(backlog: ArrayLike<number>): () => void {
  const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let sinceMs = performance.now();
  return () => {
    const workedMs = performance.now() - sinceMs;
    const workShare = Math.min(Math.max(backlog[0]! / UNTHROTTLED_BACKLOG, WORK_SHARE_MIN), 1);
    Atomics.wait(never, 0, 0, Math.min(workedMs * (1 / workShare - 1), SLEEP_MS_MAX));
    sinceMs = performance.now();
  };
}
