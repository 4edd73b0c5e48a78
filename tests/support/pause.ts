/** Delays that do not depend on a clock. */
import { type Random, randomInteger } from "../../tools/support/random.ts";

/** Yields to other tasks up to `turnsMax` times. */
export async function pause(random: Random, turnsMax: number): Promise<void> {
  for (let turns = randomInteger(random, 0, turnsMax); turns > 0; turns--) await Promise.resolve();
}
