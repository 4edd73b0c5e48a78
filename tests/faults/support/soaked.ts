/**
 * A soak (`tools/soak/`) as a test: its clients load the real service while the disturbances of the
 * test come over it, and its audit holds the log to every receipt, replay, follow and listing.
 */
import process from "node:process";
import type { Disturbance } from "../../../tools/soak/disturbances.ts";
import { runSoak, type SoakOptions, type SoakResult } from "../../../tools/soak/run.ts";
import { withFolder } from "../../../tools/support/program.ts";
import { SEED } from "../../../tools/support/random.ts";
import { THIS_RUNTIME } from "../../../tools/support/runtimes.ts";

/** The longest load between two disturbances. */
const LOAD_MS_MAX = 100;

/** Goes through a deck. @throws {SoakError} something is wrong with the service. */
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
      loadMsMax: LOAD_MS_MAX,
      report: () => {},
      signal: new AbortController().signal,
      ...options,
    })
  );
}

/** Tells what a long run went through, where `variable` asks for one. */
export function tellOfLongRun(variable: string, { tally }: SoakResult, struck: unknown): void {
  if (process.env[variable] === undefined) return;
  process.stderr.write(`${tally}: ${JSON.stringify(struck)}\n`);
}
