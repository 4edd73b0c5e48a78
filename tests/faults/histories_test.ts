/**
 * Long random histories of four generations, each of which ends in a crash. HISTORIES sets the
 * number of histories, and HISTORY_STEPS sets the number of steps per generation. To rerun history
 * n of SEED s, use SEED s + n and HISTORIES=1.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { seededRandom, testSeed } from "../../tools/support/random.ts";
import { HistoryRun, type Tally } from "./support/history_run.ts";

/** This many histories produce nearly every outcome. Rare ones may need up to HISTORIES_MAX. */
const HISTORIES_FOR_ALL = 50;
const HISTORIES_MAX = 250;
/** Number of histories by default. */
const HISTORIES_FEW = 25;
const EXPECTED = [
  ...["committed", "duplicate", "retired", "already_retired", "batch_id_conflict"],
  ...["source_retired", "source_lineage_conflict", "stream_frontier_conflict", "source_not_found"],
  ...["storage_full", "writer_poisoned", "failed", "startup failed", "seal failed"],
  ...["crash in submissions", "crash in shutdown", "crash in seal", "crash in recovery"],
];

const firstSeed = testSeed();
const count = Number(process.env.HISTORIES ?? HISTORIES_FEW);
const steps = Number(process.env.HISTORY_STEPS ?? 60);

/** Runs one history. @throws {Error} with the command that reruns the failed history. */
async function runHistory(seed: number, tally: Tally): Promise<void> {
  try {
    await new HistoryRun(seededRandom(seed), steps, tally).run();
  } catch (error) {
    const again = `SEED=${seed} HISTORIES=1 HISTORY_STEPS=${steps} node --test ` +
      "tests/faults/histories_test.ts";
    throw new Error(`a guarantee was broken; rerun: ${again}`, { cause: error });
  }
}

test(`random histories of crashes and faults break no guarantee (SEED=${firstSeed})`, async () => {
  const tally: Tally = {};
  const missing = () => EXPECTED.filter((what) => tally[what] === undefined);
  const isEnough = (done: number) =>
    done >= count && (count < HISTORIES_FOR_ALL || done >= HISTORIES_MAX || missing().length === 0);
  for (let done = 0; !isEnough(done); done++) await runHistory(firstSeed + done, tally);
  if (count < HISTORIES_FOR_ALL) return;
  process.stderr.write(`${JSON.stringify(tally)}\n`);
  assert.deepEqual(missing(), []);
});
