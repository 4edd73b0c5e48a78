/**
 * Turns of the event loop. Work yields in one of two ways, each of which was measured:
 *
 * - By an immediate, which takes microseconds. While one is pending, Deno polls sockets only every
 *   61 turns, so a turn must be short.
 * - By a timer, which takes a millisecond, if others must not wait for 61 turns of milliseconds.
 *
 * Scans alternate between both, see `scan_turn.ts`.
 */
import { setImmediate } from "node:timers";
import { setTimeout } from "node:timers/promises";

/** Lets sockets be served after milliseconds of work. */
export async function serveSockets(): Promise<void> {
  await setTimeout(0);
}

/** Runs waiting work in order, one item in each turn. */
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
