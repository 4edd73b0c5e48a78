/** Lets all that is ready go on, as any wait for a disk does. */
import { setImmediate } from "node:timers";

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
