/** Yields to socket and file I/O between slices of long work. */
import { setTimeout } from "node:timers/promises";

/**
 * Runs long-running work in slices. Between slices it waits for a timer, not an immediate. While an
 * immediate is pending, Deno polls sockets only every 61 turns, and a response takes 64 ms instead
 * of 1 ms. Waiting for a timer takes one or two milliseconds, so slices should not be shorter.
 */
export async function inTurns<Result>(slices: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
    await setTimeout(0);
  }
}
