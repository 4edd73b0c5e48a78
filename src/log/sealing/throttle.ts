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
export const SEAL_BACKLOG_BYTES_MAX: number = 4 * TAIL_ROTATE_BYTES;

/** The share of the time that the thread works when little is left to seal. */
export const WORK_SHARE_MIN: number = 1 / 4;

/** The longest sleep. */
const SLEEP_MS_MAX = 100;

const KIB = 1024;

/** Words of the shared memory: the backlog in KiB, and a constant one to sleep on. */
const BACKLOG = 0;
const NEVER = 1;
const WORDS = 2;

/** The serving thread sets it, the sealing thread sleeps by it. */
export class Throttle {
  /** Shared by both threads. */
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  #sinceMs = performance.now();

  /** @param memory that of the throttle on the other thread; none yet if absent. */
  constructor(memory = new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#words = new Int32Array(memory);
  }

  /** Bytes of commits that are not sealed. */
  set backlogBytes(bytes: number) {
    Atomics.store(this.#words, BACKLOG, Math.min(Math.ceil(bytes / KIB), 2 ** 31 - 1));
  }

  /** The share of the time, from 0 to 1, that the thread works now. */
  get workShare(): number {
    const backlogBytes = Atomics.load(this.#words, BACKLOG) * KIB;
    return Math.min(Math.max(backlogBytes / SEAL_BACKLOG_BYTES_MAX, WORK_SHARE_MIN), 1);
  }

  /** Sleeps in proportion to the work since the last call. Blocks the thread. */
  pause(): void {
    const workedMs = performance.now() - this.#sinceMs;
    const sleepMs = Math.min(workedMs * (1 / this.workShare - 1), SLEEP_MS_MAX);
    Atomics.wait(this.#words, NEVER, 0, sleepMs);
    this.#sinceMs = performance.now();
  }
}
