/**
 * Times out what makes no progress: reads of bodies, and followers that take no record. One coarse
 * timer serves all pending waits, because a timer for each request would cost more than reading its
 * body. A wait ends after the timeout, at most an eighth later.
 */
import { clearInterval, setInterval } from "node:timers";

const SWEEPS_PER_TIMEOUT = 8;

/** A recurring wait with a timeout. Starting and stopping it is cheap. */
export class Wait {
  /** Called at the timeout. */
  readonly giveUp: () => void;
  /** Sweeps since its start; null while it is stopped. */
  sweeps: number | null = null;

  constructor(giveUp: () => void) {
    this.giveUp = giveUp;
  }

  start(): void {
    this.sweeps = 0;
  }

  stop(): void {
    this.sweeps = null;
  }
}

/** A read brought nothing for the whole timeout. */
export class StallError extends Error {
  override name = "StallError";
}

export class StallWatch {
  readonly #timeoutMs: number;
  readonly #watched: Set<Wait> = new Set();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Passes on the outcome of one read.
   * @throws {StallError} there was none in time; the read itself continues unobserved.
   */
  guard<T>(read: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const wait = new Wait(() =>
        reject(new StallError(`nothing arrived for ${this.#timeoutMs} ms`))
      );
      wait.start();
      this.add(wait);
      read.then((value) => {
        this.remove(wait);
        resolve(value);
      }, (error) => {
        this.remove(wait);
        reject(error);
      });
    });
  }

  /** Watches a wait until `remove()`. */
  add(wait: Wait): void {
    this.#watched.add(wait);
    this.#timer ??= setInterval(() => this.#sweep(), this.#timeoutMs / SWEEPS_PER_TIMEOUT).unref();
  }

  /** Stops watching a wait. */
  remove(wait: Wait): void {
    this.#watched.delete(wait);
  }

  #sweep(): void {
    for (const wait of this.#watched) {
      if (wait.sweeps === null) continue;
      wait.sweeps += 1;
      if (wait.sweeps <= SWEEPS_PER_TIMEOUT) continue;
      wait.stop();
      wait.giveUp();
    }
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
