/**
 * Wakes those who wait for the log to change, once each. Not before the event loop's next turn, so
 * that a commit's receipts are sent first; and only so many in a turn, so that requests are
 * answered while a thousand followers are sent an event.
 *
 * Arrays and not sets: a set that is filled and emptied all the time leaves tables behind that
 * refer to each other, which only a full garbage collection frees.
 */
import { setImmediate } from "node:timers";

/** Followers woken in one turn of the event loop: about half a millisecond of work. */
export const WAKES_PER_TURN_MAX: number = 64;

export class ChangeSignal {
  #waiting: (() => void)[] = [];
  /** Those who are being woken, the last one first. */
  #due: (() => void)[] = [];

  /** Wakes all who wait now. */
  fire(): void {
    if (this.#waiting.length === 0) return;
    const isWaking = this.#due.length > 0;
    this.#due = this.#waiting.concat(this.#due);
    this.#waiting = [];
    if (!isWaking) setImmediate(() => this.#wakeSome());
  }

  /** `wake` is called at the next change, unless it is taken back before. */
  add(wake: () => void): void {
    this.#waiting.push(wake);
  }

  /** Takes `wake` back, if it is not due yet. */
  remove(wake: () => void): void {
    const place = this.#waiting.indexOf(wake);
    if (place >= 0) this.#waiting.splice(place, 1);
  }

  #wakeSome(): void {
    for (let woken = 0; woken < WAKES_PER_TURN_MAX; woken++) this.#due.pop()?.();
    if (this.#due.length > 0) setImmediate(() => this.#wakeSome());
  }
}
