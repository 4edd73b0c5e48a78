/** Wakes those who wait for the log to change: once each, all together. */
export class ChangeSignal {
  #waiting = new Set<() => void>();

  /** Wakes all who wait now. */
  fire(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }

  /** `wake` is called at the next change, unless it is taken back before. */
  add(wake: () => void): void {
    this.#waiting.add(wake);
  }

  remove(wake: () => void): void {
    this.#waiting.delete(wake);
  }
}
