/**
 * Runs long random histories one after the other. As a program, `node histories.ts 10000`, it takes
 * half of the time that they take within a test, and prints what happened so far now and then.
 */
import process from "node:process";
import { pathToFileURL } from "node:url";
import { seededRandom, testSeed } from "../../support/random.ts";
import { HistoryRun, type Tally } from "./history_run.ts";

const HISTORIES_TOLD = 100;

/**
 * @param onHistory told of each that was gone through.
 * @throws {Error} names the command that runs the history again that broke a promise.
 */
export async function runHistories(
  firstSeed: number,
  count: number,
  onHistory: (count: number, tally: Tally) => void = () => {},
): Promise<Tally> {
  const tally: Tally = {};
  for (let seed = firstSeed; seed < firstSeed + count; seed++) {
    try {
      await new HistoryRun(seededRandom(seed), tally).run();
    } catch (error) {
      const again = `SEED=${seed} HISTORIES=1 node --test tests/faults/histories_test.ts`;
      throw new Error(`a promise is broken; again: ${again}`, { cause: error });
    }
    onHistory(seed + 1 - firstSeed, tally);
  }
  return tally;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const firstSeed = testSeed();
  const count = Number(process.argv[2]);
  const startMs = performance.now();
  await runHistories(firstSeed, count, (done, tally) => {
    if (done % HISTORIES_TOLD !== 0 && done !== count) return;
    const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
    process.stdout.write(
      `SEED=${firstSeed}, ${done} histories in ${seconds} s: ${JSON.stringify(tally)}\n`,
    );
  });
}
