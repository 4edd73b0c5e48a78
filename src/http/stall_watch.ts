/**
 * Times out stalled heads, bodies and followers. One coarse timer serves all waits, because a timer
 * per request would cost more than reading its body. Timeouts fire at most an eighth late.
 */
import { clearInterval, setInterval } from "node:timers";

const SWEEPS_PER_TIMEOUT = 8;

/** A restartable timeout, cheap to start and stop. */
export class Wait {
  /** Called at the timeout. */
  readonly giveUp: () => void;
  /** Sweeps since the start; null while stopped. */
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

/** A read timed out. */
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
   * Returns the result of a read.
   * @throws {StallError} the read timed out; it continues unobserved.
   */
  guard<T>(read: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const wait = new Wait(() => reject(new StallError(`no data for ${this.#timeoutMs} ms`)));
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

  add(wait: Wait): void {
    this.#watched.add(wait);
    this.#timer ??= setInterval(() => this.#sweep(), this.#timeoutMs / SWEEPS_PER_TIMEOUT).unref();
  }

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
