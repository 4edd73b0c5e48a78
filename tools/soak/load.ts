/** State shared by all clients in a round, and their pauses. */
import { setTimeout as delay } from "node:timers/promises";
import type { EventLogClient } from "../../src/client/event_log_client.ts";
import { EventLogError } from "../../src/client/errors.ts";
import { ANSWER_TIMEOUT_MS } from "./bounds.ts";
import type { Ledger } from "./ledger.ts";
import type { Observations } from "./observations.ts";
import type { Tally } from "./tally.ts";
import type { Step } from "./workload.ts";

export interface Load {
  seed: number;
  client: EventLogClient;
  ledger: Ledger;
  observations: Observations;
  tally: Tally;
  /** Actions for writers; default: all. */
  steps?: readonly Step[];
  /** Aborted when clients should finish their current work and stop. */
  ending: AbortSignal;
  /** Aborted on a violation, after which responses no longer matter. */
  failing: AbortSignal;
}

/** Waits for `durationMs`, or until clients should end. */
export async function pause(load: Load, durationMs: number): Promise<void> {
  try {
    await delay(durationMs, undefined, { signal: load.ending });
  } catch (error) {
    if (!load.ending.aborted) throw error;
  }
}

/** Aborts a read on a violation, or after the time limit for a response. */
export function readSignal({ failing }: Load): AbortSignal {
  return AbortSignal.any([failing, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
}

/**
 * Awaits `work`, which must reject with the error `code`. @returns the error.
 * @throws {unknown} if `work` throws a different error or resolves.
 */
export async function refusalOf(work: Promise<unknown>, code: string): Promise<EventLogError> {
  let answer: unknown;
  try {
    answer = await work;
  } catch (error) {
    if (error instanceof EventLogError && error.code === code) return error;
    throw error;
  }
  throw new Error(`should have been rejected with ${code}, but returned ${JSON.stringify(answer)}`);
}
