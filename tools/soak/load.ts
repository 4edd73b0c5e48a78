/** What all clients of a round share, and how they wait. */
import { setTimeout as delay } from "node:timers/promises";
import type { EventLogClient } from "../../src/client/event_log_client.ts";
import { EventLogError } from "../../src/client/errors.ts";
import { ANSWER_TIMEOUT_MS } from "./bounds.ts";
import type { Ledger } from "./ledger.ts";
import type { Observations } from "./observations.ts";
import type { Tally } from "./tally.ts";

export interface Load {
  seed: number;
  client: EventLogClient;
  ledger: Ledger;
  observations: Observations;
  tally: Tally;
  /** Aborted when the clients are to finish what they are at, and end. */
  ending: AbortSignal;
  /** Aborted when something is wrong: nobody needs an answer any more. */
  failing: AbortSignal;
}

/** Waits, but not when the clients are to end. */
export async function pause(load: Load, durationMs: number): Promise<void> {
  try {
    await delay(durationMs, undefined, { signal: load.ending });
  } catch (error) {
    if (!load.ending.aborted) throw error;
  }
}

/** For a read: a service that gives no answer in this time hangs. */
export function readSignal({ failing }: Load): AbortSignal {
  return AbortSignal.any([failing, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
}

/**
 * Does what must be refused. @returns the error.
 * @throws {unknown} any other error, and what `work` returned when it was not refused.
 */
export async function refusalOf(work: Promise<unknown>, code: string): Promise<EventLogError> {
  let answer: unknown;
  try {
    answer = await work;
  } catch (error) {
    if (error instanceof EventLogError && error.code === code) return error;
    throw error;
  }
  throw new Error(`was to be refused with ${code}, and answered ${JSON.stringify(answer)}`);
}
