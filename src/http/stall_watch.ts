/**
 * Gives up reads that bring nothing for too long. One coarse timer serves all reads under way,
 * since a timer for each request would cost more than reading its body: a read is given up after
 * the timeout and at most an eighth more.
 */
import { clearInterval, setInterval } from "node:timers";

const SWEEPS_PER_TIMEOUT = 8;

interface PendingRead {
  sweeps: number;
  giveUp: () => void;
}

/** A read brought nothing for the whole timeout. */
export class StallError extends Error {
  override name = "StallError";
}

export class StallWatch {
  readonly #timeoutMs: number;
  readonly #pending: Set<PendingRead> = new Set();
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
      const pending: PendingRead = {
        sweeps: 0,
        giveUp: () => reject(new StallError(`nothing arrived for ${this.#timeoutMs} ms`)),
      };
      this.#watch(pending);
      read.then((value) => {
        this.#pending.delete(pending);
        resolve(value);
      }, (error) => {
        this.#pending.delete(pending);
        reject(error);
      });
    });
  }

  #watch(pending: PendingRead): void {
    this.#pending.add(pending);
    this.#timer ??= setInterval(() => this.#sweep(), this.#timeoutMs / SWEEPS_PER_TIMEOUT).unref();
  }

  #sweep(): void {
    for (const pending of this.#pending) {
      pending.sweeps += 1;
      if (pending.sweeps <= SWEEPS_PER_TIMEOUT) continue;
      this.#pending.delete(pending);
      pending.giveUp();
    }
    if (this.#pending.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
