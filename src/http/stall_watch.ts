/**
 * Gives up what brings nothing for too long: reads of bodies, and followers that take no record.
 * One coarse timer serves all waits under way, since a timer for each request would cost more than
 * reading its body: a wait is given up after the timeout and at most an eighth more.
 */
import { clearInterval, setInterval } from "node:timers";

const SWEEPS_PER_TIMEOUT = 8;

/** For something that must happen in time; the same one can be started again and again. */
export interface Wait {
  /** Sweeps since its start. Changed by {@linkcode StallWatch} alone. */
  sweeps: number;
  /** Called when it has taken too long. */
  giveUp: () => void;
}

/** A read brought nothing for the whole timeout. */
export class StallError extends Error {
  override name = "StallError";
}

export class StallWatch {
  readonly #timeoutMs: number;
  readonly #pending: Set<Wait> = new Set();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Passes the outcome of one read on.
   * @throws {StallError} there was none in time; the read itself goes on unobserved.
   */
  guard<T>(read: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const wait: Wait = {
        sweeps: 0,
        giveUp: () => reject(new StallError(`nothing arrived for ${this.#timeoutMs} ms`)),
      };
      this.start(wait);
      read.then((value) => {
        this.stop(wait);
        resolve(value);
      }, (error) => {
        this.stop(wait);
        reject(error);
      });
    });
  }

  /** Starts a wait; it is given up unless it is stopped in time. */
  start(wait: Wait): void {
    wait.sweeps = 0;
    this.#pending.add(wait);
    this.#timer ??= setInterval(() => this.#sweep(), this.#timeoutMs / SWEEPS_PER_TIMEOUT).unref();
  }

  /** Ends a wait. Harmless when it is not under way. */
  stop(wait: Wait): void {
    this.#pending.delete(wait);
  }

  #sweep(): void {
    for (const wait of this.#pending) {
      wait.sweeps += 1;
      if (wait.sweeps <= SWEEPS_PER_TIMEOUT) continue;
      this.stop(wait);
      wait.giveUp();
    }
    if (this.#pending.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
