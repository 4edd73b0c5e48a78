/**
 * Keeps a thread that seals from taking a processor for itself: after each millisecond of work it
 * sleeps, the longer the less there is to be sealed. Whoever shares the processor waits for a slice
 * of that work instead of the system's, which can be a tenth of a second.
 */
import { TAIL_ROTATE_BYTES } from "../../limits.ts";

/**
 * With so much to be sealed it works without pauses. Between, its share grows with what waits, so
 * that a steady ingest finds a balance and a burst is sealed when it is over.
 */
export const SEAL_BACKLOG_BYTES_MAX: number = 4 * TAIL_ROTATE_BYTES;

/** The share of its time that it works when little is to be sealed. */
export const PACE_SHARE_MIN: number = 1 / 4;

/** And no longer than this, however long the work took. */
const PACE_PAUSE_MS_MAX = 100;

/** The thread that seals stands still after so much work: others wait that long at the most. */
const PACE_WORK_MS = 1;

/** To be called often; sleeps when it is time to. */
export type Pace = () => void;

/** Never sleeps. */
export const FULL_SPEED: Pace = () => {};

/** Hands on items, at a pace. */
export function* paced<Item>(items: Iterable<Item>, pace: Pace): Generator<Item, void> {
  for (const item of items) {
    pace();
    yield item;
  }
}

const KIB = 1024;

/** How much waits to be sealed: told by the thread that serves, seen by the one that seals. */
export class SealBacklog {
  /** What both threads hold. */
  readonly memory: SharedArrayBuffer;
  /** The size in KiB. */
  readonly #size: Int32Array;

  /** @param memory that of the backlog on the other thread; none yet if absent. */
  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#size = new Int32Array(memory);
  }

  get bytes(): number {
    return Atomics.load(this.#size, 0) * KIB;
  }

  set bytes(bytes: number) {
    Atomics.store(this.#size, 0, Math.min(Math.ceil(bytes / KIB), 2 ** 31 - 1));
  }
}

/**
 * The share of its time, from 0 to 1, that a thread works which has so much to seal: a sealing that
 * is quicker than ingest leaves it most of the machine, and one that falls behind takes more.
 */
export function workShare(backlogBytes: number): number {
  return Math.min(Math.max(backlogBytes / SEAL_BACKLOG_BYTES_MAX, PACE_SHARE_MIN), 1);
}

/** For a thread that nobody waits for: it really stands still. */
export function paceBy(backlog: SealBacklog): Pace {
  const never = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let sinceMs = performance.now();
  return () => {
    const workedMs = performance.now() - sinceMs;
    if (workedMs < PACE_WORK_MS) return;
    const pauseMs = workedMs * (1 / workShare(backlog.bytes) - 1);
    Atomics.wait(never, 0, 0, Math.min(pauseMs, PACE_PAUSE_MS_MAX));
    sinceMs = performance.now();
  };
}
