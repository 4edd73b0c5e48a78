/**
 * Runs long random histories one after the other. As a program, `node histories.ts 10000`, it takes
 * less time than within a test, and prints what happened so far now and then. HISTORY_STEPS says
 * how many steps each of the four generations of a history has.
 */
import process from "node:process";
import { pathToFileURL } from "node:url";
import { seededRandom, testSeed } from "../../../tools/support/random.ts";
import { HistoryRun, type Tally } from "./history_run.ts";

const STEPS = 150;
const HISTORIES_TOLD = 100;

interface HistoriesOptions {
  /** Of each generation; HISTORY_STEPS goes before. */
  steps: number;
  /** What has happened before, and is counted on. */
  tally?: Tally;
  /** Told of each history that was gone through. */
  onHistory?: (count: number, tally: Tally) => void;
}

/** @throws {Error} names the command that runs the history again that broke a promise. */
export async function runHistories(
  firstSeed: number,
  count: number,
  options: HistoriesOptions,
): Promise<Tally> {
  const steps = Number(process.env.HISTORY_STEPS ?? options.steps);
  const tally = options.tally ?? {};
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    try {
      await new HistoryRun(seededRandom(seed), steps, tally).run();
    } catch (error) {
      const again = `SEED=${seed} HISTORIES=1 HISTORY_STEPS=${steps} node --test ` +
        "tests/faults/histories_test.ts";
      throw new Error(`a promise is broken; again: ${again}`, { cause: error });
    }
    options.onHistory?.(seed + 1 - firstSeed, tally);
  }
  return tally;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const firstSeed = testSeed();
  const count = Number(process.argv[2]);
  const startMs = performance.now();
  const onHistory = (done: number, tally: Tally) => {
    if (done % HISTORIES_TOLD !== 0 && done !== count) return;
    const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
    process.stdout.write(
      `SEED=${firstSeed}, ${done} histories in ${seconds} s: ${JSON.stringify(tally)}\n`,
    );
  };
  await runHistories(firstSeed, count, { steps: STEPS, onHistory });
}
