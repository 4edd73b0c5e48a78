/**
 * Scans share the processor: in each turn of the event loop, they work for a millisecond together,
 * also if they never wait because all that they read is cached. The others wait in order. A scan
 * that has not run yet goes ahead of those that have, so that a short one need not wait for long
 * ones; but if both wait, they alternate.
 */
import { nextTick } from "node:process";
import { setImmediate, setTimeout } from "node:timers";

const TURN_MS = 1;
/** While immediates are pending, Deno may not poll sockets. A timer in every fourth turn does. */
const TIMER_TURNS = 4;

const newScans: (() => void)[] = [];
const startedScans: (() => void)[] = [];
/** When the scans have used up the current turn of the event loop. */
let endMs = 0;
let isTurnOver = true;
let turns = 0;
let isNewNext = true;

export class ScanTurn {
  #hasStarted = false;

  /** Waits until the scan may work. Called before each piece of work. */
  async next(): Promise<void> {
    const waiting = this.#hasStarted ? startedScans : newScans;
    // New ones, of which hundreds may come in the same millisecond, start one after another.
    if (this.#hasStarted && performance.now() < endMs) return;
    this.#hasStarted = true;
    if (isTurnOver && !isAnyWaiting()) beginTurn();
    else await new Promise<void>((resolve) => waiting.push(resolve));
  }
}

function isAnyWaiting(): boolean {
  return newScans.length > 0 || startedScans.length > 0;
}

function beginTurn(): void {
  isTurnOver = false;
  endMs = performance.now() + TURN_MS;
  setImmediate(endTurn);
}

function endTurn(): void {
  isTurnOver = true;
  if (!isAnyWaiting()) return;
  turns += 1;
  if (turns % TIMER_TURNS === 0) setTimeout(runWaiting, 0);
  else runWaiting();
}

/** Lets those that wait work in a new turn. */
function runWaiting(): void {
  beginTurn();
  runNext();
}

function runNext(): void {
  const [first, second] = isNewNext ? [newScans, startedScans] : [startedScans, newScans];
  isNewNext = !isNewNext;
  const resume = first.shift() ?? second.shift();
  if (resume === undefined) return;
  resume();
  // A tick that a microtask plans runs after all microtasks, and so after the scan's work.
  queueMicrotask(() => nextTick(runRest));
}

function runRest(): void {
  if (performance.now() < endMs) runNext();
}
