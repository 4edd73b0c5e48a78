/** Yields to socket and file I/O between slices of long work. */
import { setTimeout } from "node:timers/promises";

/**
 * Runs long work slice by slice. Between slices it waits for a timer instead of an immediate: while
 * an immediate is ready, Deno polls its sockets only every 61 turns (64 ms per response instead of
 * 1 ms, measured). A timer costs a millisecond or two, so slices should not be shorter than that.
 */
export async function inTurns<Result>(slices: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
    await setTimeout(0);
  }
}
