/**
 * Runs a soak (`tools/soak/`) as a test. Its clients put load on the real service while the test
 * disturbs it, and its audit checks the log against every receipt, replay, follow and listing.
 */
import process from "node:process";
import type { Disturbance } from "../../../tools/soak/disturbances.ts";
import { runSoak, type SoakOptions, type SoakResult } from "../../../tools/soak/run.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { SEED } from "../../../tools/support/random.ts";
import { THIS_RUNTIME } from "../../../tools/support/runtimes.ts";

/** Maximum duration of the load between two faults. */
const LOAD_MS_MAX = 100;
/** Half the clients of a long soak. */
const CLIENTS = { writers: 3, readers: 1, followers: 2 };

/** Runs a sequence of faults. @throws {SoakError} if the service broke a guarantee. */
export function soakThrough(
  deck: readonly Disturbance[],
  options: Partial<SoakOptions> = {},
): Promise<SoakResult> {
  return withFolder((dir) =>
    runSoak({
      dir,
      seed: SEED,
      runtimes: [THIS_RUNTIME],
      deck,
      clients: CLIENTS,
      loadMsMax: LOAD_MS_MAX,
      report: () => {},
      signal: new AbortController().signal,
      ...options,
    })
  );
}

/** Prints statistics from a long run if `variable` is set in the environment. */
export function tellOfLongRun(variable: string, { tally }: SoakResult): void {
  if (process.env[variable] !== undefined) process.stderr.write(`${tally}\n`);
}
