/**
 * Wakes waiting followers when the log changes. It wakes them after the commit's receipts are sent,
 * a few per turn of the event loop, so that a thousand followers do not delay requests.
 *
 * Uses arrays, because a set that is constantly filled and emptied leaves behind hash tables that
 * only a full garbage collection frees.
 */
import { setImmediate } from "node:timers";

/** Followers woken per turn of the event loop: about half a millisecond of work. */
export const WAKES_PER_TURN_MAX: number = 64;

export class ChangeSignal {
  #waiting: (() => void)[] = [];
  /** Followers to wake, in reverse order. */
  #due: (() => void)[] = [];

  /** Wakes all current waiters. */
  fire(): void {
    if (this.#waiting.length === 0) return;
    const isWaking = this.#due.length > 0;
    this.#due = this.#waiting.concat(this.#due);
    this.#waiting = [];
    if (!isWaking) setImmediate(() => this.#wakeSome());
  }

  /** Calls `wake` after the next change, unless it is removed first. */
  add(wake: () => void): void {
    this.#waiting.push(wake);
  }

  remove(wake: () => void): void {
    const index = this.#waiting.indexOf(wake);
    if (index >= 0) this.#waiting.splice(index, 1);
  }

  #wakeSome(): void {
    for (let woken = 0; woken < WAKES_PER_TURN_MAX; woken++) this.#due.pop()?.();
    if (this.#due.length > 0) setImmediate(() => this.#wakeSome());
  }
}
