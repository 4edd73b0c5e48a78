/** State shared by all clients of a log, and their pauses. */
import { setTimeout as delay } from "node:timers/promises";
import type { EventLogClient } from "../../src/client/event_log_client.ts";
import { EventLogError } from "../../src/client/errors.ts";
import type { Observation } from "./audit.ts";
import { ANSWER_TIMEOUT_MS } from "./bounds.ts";
import type { Random } from "../support/random.ts";
import type { Ledger } from "./ledger.ts";
import type { Tally } from "./tally.ts";
import type { Step } from "./workload.ts";

export interface Load {
  seed: number;
  /** Number of the log, which makes client names unique. */
  number: number;
  client: EventLogClient;
  ledger: Ledger;
  /** What the audit has not reached yet. */
  observations: Observation[];
  tally: Tally;
  /** Actions for writers; default: all. */
  steps?: readonly Step[];
  /** Aborted when clients should finish their current work and stop. */
  ending: AbortSignal;
  /** Aborted on a violation, after which responses no longer matter. */
  failing: AbortSignal;
}

/** A client's view of the load. */
export interface ClientLoad extends Load {
  /** Unique across logs, for messages and for the names of sources. */
  name: string;
  random: Random;
}

/** Waits for `durationMs`, or until clients should end. */
export async function pause({ ending }: Load, durationMs: number): Promise<void> {
  try {
    await delay(durationMs, undefined, { signal: ending });
  } catch (error) {
    if (!ending.aborted) throw error;
  }
}

/** Aborts a read on a violation, or after the time limit for a response. */
export function readSignal({ failing }: Load): AbortSignal {
  return AbortSignal.any([failing, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
}

/** Runs `work`, which is aborted after `durationMs`. @throws any error before that. */
export async function giveUpAfter(
  { failing, tally }: Load,
  durationMs: number,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const givenUp = AbortSignal.timeout(Math.ceil(durationMs));
  try {
    await work(AbortSignal.any([givenUp, failing]));
  } catch (error) {
    if (!givenUp.aborted || failing.aborted) throw error;
    tally.add("aborts");
  }
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
