/** Runs waiting work in order, one item in each turn of the event loop. */
import { setImmediate } from "node:timers";

export class Turns {
  readonly #waiting: (() => void)[] = [];

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    if (this.#waiting.length === 0) setImmediate(() => this.#run());
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #run(): void {
    this.#waiting.shift()!();
    if (this.#waiting.length > 0) setImmediate(() => this.#run());
  }
}
