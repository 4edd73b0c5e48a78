/**
 * Scans share the processor: a few run at a time, the others wait in order. A scan yields after a
 * millisecond of work, also where it never waits because all that it reads is cached.
 */
import { setImmediate } from "node:timers/promises";

/** Maximum number of scans that run at a time. */
export const RUNNING_SCANS_MAX = 4;
const TURN_MS = 1;

let running = 0;
/** Scans waiting for their turn, in order. */
const waiting: (() => void)[] = [];

export class ScanTurn {
  #endMs = 0;

  /** Waits for the scan's turn. */
  async begin(): Promise<void> {
    if (running < RUNNING_SCANS_MAX) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    this.#endMs = performance.now() + TURN_MS;
  }

  /** Lets others run if the turn has taken its time. */
  async yield(): Promise<void> {
    if (performance.now() < this.#endMs) return;
    this.end();
    await setImmediate();
    await this.begin();
  }

  /** Ends the turn. The next scan starts once the event loop has served sockets. */
  end(): void {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else void setImmediate().then(next);
  }
}
