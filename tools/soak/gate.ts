/** Makes clients wait while a service is down. */
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { EventLogClientOptions } from "../../src/client/transport.ts";
import { SYSTEM_TIMING, type Timing } from "../../src/client/retry.ts";
import { unixFetch } from "../../src/client/unix_fetch.ts";

/** Maximum number of attempts, so high that retries end only at the time limit. */
const ATTEMPTS_MAX = 1_000_000;

/** Open while the service responds. */
export class Gate {
  #opening = Promise.withResolvers<void>();
  isOpen = false;

  open(): void {
    this.isOpen = true;
    this.#opening.resolve();
  }

  close(): void {
    this.isOpen = false;
    this.#opening = Promise.withResolvers();
  }

  /** Resolves once the gate is open. @throws the signal's abort reason. */
  async untilOpen(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = () => aborted.reject(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    try {
      await Promise.race([this.#opening.promise, aborted.promise]);
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }
}

/** Creates a client that retries once the gate is open, after a delay of at most `retryMsMax`. */
export function gatedClient(
  socketPath: string,
  gate: Gate,
  retryMsMax: number,
  options: EventLogClientOptions = {},
): EventLogClient {
  const timing: Timing = {
    ...SYSTEM_TIMING,
    sleep: async (durationMs, signal) => {
      await gate.untilOpen(signal);
      await SYSTEM_TIMING.sleep(Math.min(durationMs, retryMsMax), signal);
    },
  };
  return new EventLogClient(unixFetch(socketPath), {
    ...options,
    attemptsMax: ATTEMPTS_MAX,
    timing,
  });
}
