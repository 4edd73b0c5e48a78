/** Gives way to sockets and files between slices of long work. */
import { setTimeout } from "node:timers/promises";

/**
 * Runs long work slice by slice. Between slices it waits for a timer, not an immediate: with one
 * always ready, Deno polls its sockets only every 61 turns (measured: 64 ms per response instead of
 * 1 ms). A timer costs a millisecond or two, so slices should be no shorter than that.
 */
export async function inTurns<Result>(slices: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
    await setTimeout(0);
  }
}
