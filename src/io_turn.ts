/**
 * Gives way to others between slices of long work.
 *
 * By a timer, since an immediate would not do: under Deno, a program that always has one ready
 * looks at its sockets only every 61 turns (measured: 64 ms instead of 1 ms for an answer between
 * slices of 1 ms). A timer costs a millisecond or two, so slices are to be no shorter than that.
 */
import { setTimeout } from "node:timers/promises";

/** Returns when sockets and files have had their turn. */
function ioTurn(): Promise<void> {
  return setTimeout(0);
}

/** Does long work slice by slice, and gives way to others between them. */
export async function inTurns<Result>(slices: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
    await ioTurn();
  }
}
