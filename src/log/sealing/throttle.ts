/**
 * Keeps the sealing thread from occupying a processor: it sleeps after each row group, longer when
 * less is left to seal. Ingest and reads then wait for a few milliseconds of its work instead of a
 * time slice of the system, which can be a tenth of a second.
 */
import { TAIL_ROTATE_BYTES } from "../../limits.ts";

/**
 * From this backlog on the thread is unthrottled. Below, its share of the time grows with the
 * backlog, so that steady ingest reaches a balance and a burst is sealed afterwards.
 */
const BACKLOG_BYTES_MAX = 4 * TAIL_ROTATE_BYTES;

/** The share of the time that the thread works when little is left to seal. */
const WORK_SHARE_MIN = 1 / 4;

/** The longest sleep. */
const SLEEP_MS_MAX = 100;

/**
 * Starts the clock of a task.
 * @param backlogBytes bytes of commits that are not sealed.
 * @returns sleeps in proportion to the work since the last call, and blocks the thread meanwhile.
 */
export function startThrottle(backlogBytes: number): () => void {
  const workShare = Math.min(Math.max(backlogBytes / BACKLOG_BYTES_MAX, WORK_SHARE_MIN), 1);
  const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let sinceMs = performance.now();
  return () => {
    const workedMs = performance.now() - sinceMs;
    Atomics.wait(never, 0, 0, Math.min(workedMs * (1 / workShare - 1), SLEEP_MS_MAX));
    sinceMs = performance.now();
  };
}
