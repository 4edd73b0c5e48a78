/** A client that waits while a service is down. */
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { EventLogClientOptions } from "../../src/client/transport.ts";
import { SYSTEM_TIMING, type Timing } from "../../src/client/retry.ts";
import type { Fetch } from "../../src/client/unix_fetch.ts";

/** Maximum number of attempts, so high that retries end only at the time limit. */
const ATTEMPTS_MAX = 1_000_000;
const POLL_MS = 20;

/** Open while the service responds. */
export interface Gate {
  isOpen: boolean;
}

/** Creates a client that retries once the gate is open, after a delay of at most `retryMsMax`. */
export function gatedClient(
  fetch: Fetch,
  gate: Gate,
  retryMsMax: number,
  options: EventLogClientOptions = {},
): EventLogClient {
  const { sleep } = SYSTEM_TIMING;
  const timing: Timing = {
    ...SYSTEM_TIMING,
    sleep: async (durationMs, signal) => {
      while (!gate.isOpen) await sleep(POLL_MS, signal);
      await sleep(Math.min(durationMs, retryMsMax), signal);
    },
  };
  const attemptsMax = ATTEMPTS_MAX;
  return new EventLogClient(fetch, { ...options, attemptsMax, timing });
}
