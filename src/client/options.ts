/** Options of the client. Unknown ones are rejected: a misspelled filter would match everything. */
import type { Retry, Timing } from "./retry.ts";

/** Options for an `EventLogClient`. */
export interface EventLogClientOptions {
  /** Bearer token, if the service requires one. */
  token?: string;
  /** Attempts per request, including the first; default 20. Set 1 to disable retries. */
  attemptsMax?: number;
  /** Timeout for an append or a retirement, covering all attempts; default 60,000. */
  writeTimeoutMs?: number;
  /** Timeout for each page or listing, and each record up to `caught_up`; default 600,000. */
  readTimeoutMs?: number;
  /** How long a new client waits for a socket, in addition to `attemptsMax`; default 1,000. */
  socketWaitMs?: number;
  /** Called before the pause that precedes each retry, except in `follow()`: see `onReconnect`. */
  onRetry?: (retry: Retry) => void;
  /** Clock, timer and randomness, for tests. */
  timing?: Timing;
}

/** @throws {TypeError} if `given` is not an object, or has an option that is not in `names`. */
export function refuseUnknown(call: string, given: object, names: string): void {
  if (typeof given !== "object" || given === null) {
    const type = given === null ? null : typeof given;
    throw new TypeError(`${call} expects an object, but got ${type}`);
  }
  const known = names.split(" ");
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(`${call} has no option ${unknown}; use one of ${known.join(", ")}`);
}
