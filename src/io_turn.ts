/**
 * Gives way to others between slices of long work: a call that goes through the thread pool.
 *
 * An immediate would not do: under Deno, a program that always has one ready looks at its sockets
 * only every 61 turns (measured: 64 ms instead of 1 ms for an answer between slices of 1 ms). A
 * timer would cost a millisecond or two each time; this costs a tenth of one.
 */
import { randomFill } from "node:crypto";

/** Returns when sockets and files have had their turn. */
export function ioTurn(): Promise<void> {
  return new Promise((resolve, reject) =>
    randomFill(new Uint8Array(1), (error) => error === null ? resolve() : reject(error))
  );
}
