/** A client that waits while a service is down. */
import { EventLogClient } from "../../src/client/event_log_client.ts";
import type { EventLogClientOptions } from "../../src/client/transport.ts";
import { SYSTEM_TIMING } from "../../src/client/retry.ts";
import type { Fetch } from "../../src/client/unix_fetch.ts";

/** So high that retries end only at the time limit. */
const ATTEMPTS_MAX = 1_000_000;

/** Creates a client that retries after a delay of at most `retryMsMax`. */
export function patientClient(
  fetch: Fetch,
  retryMsMax: number,
  options: EventLogClientOptions = {},
): EventLogClient {
  const { sleep } = SYSTEM_TIMING;
  const timing: typeof SYSTEM_TIMING = {
    ...SYSTEM_TIMING,
    sleep: (durationMs, signal) => sleep(Math.min(durationMs, retryMsMax), signal),
  };
  return new EventLogClient(fetch, { ...options, attemptsMax: ATTEMPTS_MAX, timing });
}
