/**
 * Turns of the event loop. Work yields in one of two ways, each of which was measured:
 *
 * - By an immediate, which takes microseconds. While one is pending, Deno polls sockets only every
 *   61 turns, so a turn must be short.
 * - By a timer, which takes a millisecond, if others must not wait for 61 turns of milliseconds.
 *
 * `Turns` and scans (`scan_turn.ts`) alternate between both.
 */
import { setImmediate, setTimeout } from "node:timers";
import { setTimeout as delay } from "node:timers/promises";

/** One of this many turns of short work yields by a timer. */
const TIMER_TURNS = 8;

/** Lets sockets be served after milliseconds of work. */
export async function serveSockets(): Promise<void> {
  await delay(0);
}

/** Runs waiting work in order, one item in each turn. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #timerTurns: number;
  #turns = 0;

  constructor({ timerTurns = TIMER_TURNS } = {}) {
    this.#timerTurns = timerTurns;
  }

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    if (this.#waiting.length === 0) setImmediate(() => this.#run());
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #run(): void {
    this.#waiting.shift()!();
    if (this.#waiting.length > 0) setImmediate(() => this.#goOn());
  }

  /** Runs after the last item's work, so that a timer is not due before sockets are polled. */
  #goOn(): void {
    this.#turns += 1;
    if (this.#turns % this.#timerTurns === 0) setTimeout(() => this.#run(), 0);
    else this.#run();
  }
}
