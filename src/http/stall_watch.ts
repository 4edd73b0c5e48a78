/**
 * Gives up what brings nothing for too long: reads of bodies, and followers that take no record.
 * One coarse timer serves all waits under way, since a timer for each request would cost more than
 * reading its body: a wait is given up after the timeout and at most an eighth more.
 */
import { clearInterval, setInterval } from "node:timers";

const SWEEPS_PER_TIMEOUT = 8;

/** For something that must happen in time, again and again. To start and stop it is cheap. */
export class Wait {
  /** Called when it has taken too long. */
  readonly giveUp: () => void;
  /** Sweeps since its start; null while nothing is waited for. */
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
   * Passes the outcome of one read on.
   * @throws {StallError} there was none in time; the read itself goes on unobserved.
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

  /** Gives a wait up, from now on, each time that it is not stopped in time after its start. */
  add(wait: Wait): void {
    this.#watched.add(wait);
    this.#timer ??= setInterval(() => this.#sweep(), this.#timeoutMs / SWEEPS_PER_TIMEOUT).unref();
  }

  /** Lets a wait be. */
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
