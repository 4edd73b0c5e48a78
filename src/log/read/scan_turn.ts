/**
 * Scans share the processor: in each turn of the event loop, one of them works for a millisecond,
 * also where it never waits because all that it reads is cached. The others wait in order. A scan
 * that has not run yet goes ahead of those that have, so that a short one need not wait for long
 * ones; but only every second turn is for new scans.
 */
import { setImmediate, setTimeout } from "node:timers";

const TURN_MS = 1;
/** While an immediate is pending, Deno may not poll sockets, which the timer in every eighth does. */
const TIMER_TURNS = 8;

const newScans: (() => void)[] = [];
const startedScans: (() => void)[] = [];
/** When the current turn ends. */
let endMs = 0;
let turns = 0;

export class ScanTurn {
  #hasStarted = false;

  /** Waits for a turn of the event loop, unless the current one still has time. */
  async next(): Promise<void> {
    if (performance.now() < endMs) return;
    const waiting = this.#hasStarted ? startedScans : newScans;
    this.#hasStarted = true;
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (newScans.length + startedScans.length === 1) setImmediate(run);
    });
  }
}

/** Runs the scan whose turn it is, and plans the turn of the next one. */
function run(): void {
  turns += 1;
  const queues = turns % 2 === 0 ? [newScans, startedScans] : [startedScans, newScans];
  const next = queues[0]!.shift() ?? queues[1]!.shift();
  endMs = performance.now() + TURN_MS;
  next!();
  if (newScans.length + startedScans.length === 0) return;
  if (turns % TIMER_TURNS === 0) setImmediate(() => setTimeout(run, 0));
  else setImmediate(run);
}
