/**
 * Times out idle connections and stalled heads, bodies and responses. One coarse timer serves all
 * waits, because a timer per request would cost more than reading its body. Timeouts fire up to one
 * eighth late.
 */
import { clearInterval, setInterval } from "node:timers";

const SWEEPS_PER_TIMEOUT = 8;

export class StallWatch {
  readonly timeoutMs: number;
  /** Maps the callback for each wait to the number of sweeps since the wait started. */
  readonly #sweeps: Map<() => void, number> = new Map();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
  }

  /** Starts or restarts a wait, which calls `giveUp` unless it is stopped before the timeout. */
  start(giveUp: () => void): void {
    this.#sweeps.set(giveUp, 0);
    this.#timer ??= setInterval(() => this.#sweep(), this.timeoutMs / SWEEPS_PER_TIMEOUT).unref();
  }

  /** Stops the wait that would call `giveUp`. */
  stop(giveUp: () => void): void {
    this.#sweeps.delete(giveUp);
  }

  /** Lets the wait that started first time out. @returns whether there was one. */
  expireFirst(): boolean {
    const [giveUp] = this.#sweeps.keys();
    if (giveUp === undefined) return false;
    this.stop(giveUp);
    giveUp();
    return true;
  }

  #sweep(): void {
    for (const [giveUp, sweeps] of this.#sweeps) {
      this.#sweeps.set(giveUp, sweeps + 1);
      if (sweeps < SWEEPS_PER_TIMEOUT) continue;
      this.#sweeps.delete(giveUp);
      giveUp();
    }
    if (this.#sweeps.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
