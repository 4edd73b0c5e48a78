/**
 * Wakes those who wait for the log to change: once each, all together. Not before the event loop's
 * next turn, so that a commit's receipts are sent before a thousand followers are.
 */
import { setImmediate } from "node:timers";

export class ChangeSignal {
  #waiting = new Set<() => void>();
  #isFired = false;

  /** Wakes all who wait when the work at hand is done. */
  fire(): void {
    if (this.#isFired) return;
    this.#isFired = true;
    setImmediate(() => this.#wakeAll());
  }

  /** `wake` is called at the next change, unless it is taken back before. */
  add(wake: () => void): void {
    this.#waiting.add(wake);
  }

  #wakeAll(): void {
    this.#isFired = false;
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }

  remove(wake: () => void): void {
    this.#waiting.delete(wake);
  }
}
