/** The error with which a soak reports a fault in the service. */
import { setTimeout as delay } from "node:timers/promises";

/** The service broke a guarantee or stopped working. */
export class Violation extends Error {
  override name = "Violation";
}

/** @throws {Violation} if the claim is false. */
export function claim(holds: boolean, message: string): asserts holds {
  if (!holds) throw new Violation(message);
}

/** Awaits `work`. @throws {Violation} if it takes too long. */
export async function claimInTime<T>(
  work: Promise<T>,
  timeoutMs: number,
  message: string,
): Promise<T> {
  const over = new AbortController();
  const late = delay(timeoutMs, undefined, { signal: over.signal }).then(() => {
    throw new Violation(`${message} within ${timeoutMs} ms`);
  });
  late.catch(() => {});
  return await Promise.race([work, late]).finally(() => over.abort());
}
