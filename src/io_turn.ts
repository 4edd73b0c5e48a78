/**
 * Gives way to others between slices of long work.
 *
 * By a timer, since an immediate would not do: under Deno, a program that always has one ready
 * looks at its sockets only every 61 turns (measured: 64 ms instead of 1 ms for an answer between
 * slices of 1 ms). A timer costs a millisecond or two, so slices are to be no shorter than that.
 */
import { setTimeout } from "node:timers/promises";

/** Returns when sockets and files have had their turn. */
export function ioTurn(): Promise<void> {
  return setTimeout(0);
}
