/**
 * Long random histories, each through four generations that end in a crash. HISTORIES says how
 * many, HISTORY_STEPS how many steps a generation has; history n of a run with SEED s is the only
 * one of a run with SEED s + n and HISTORIES=1.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { testSeed } from "../../tools/support/random.ts";
import { runHistories } from "./support/histories.ts";

/** So many look at nearly everything: what comes in one history of ten may take some more. */
const HISTORIES_FOR_ALL = 50;
const HISTORIES_MAX = 250;
/** Of a generation; less than half of what `support/histories.ts` goes through as a program. */
const STEPS = 60;
const EXPECTED = [
  ...["committed", "duplicate", "retired", "already_retired", "batch_id_conflict"],
  ...["source_retired", "source_lineage_conflict", "stream_frontier_conflict", "source_not_found"],
  ...["storage_full", "writer_poisoned", "failed", "start failed", "sealing failed"],
  ...["crash in submissions", "crash in shutdown", "crash in seal", "crash in recovery"],
];

const firstSeed = testSeed();
const count = Number(process.env.HISTORIES ?? HISTORIES_FOR_ALL);

test(`histories of crashes and faults keep every promise (SEED=${firstSeed})`, async () => {
  const tally = await runHistories(firstSeed, count, { steps: STEPS });
  if (count < HISTORIES_FOR_ALL) return;
  const missing = () => EXPECTED.filter((what) => tally[what] === undefined);
  for (let done = count; done < HISTORIES_MAX && missing().length > 0; done++) {
    await runHistories(firstSeed + done, 1, { steps: STEPS, tally });
  }
  assert.deepEqual(missing(), [], `of what happened: ${JSON.stringify(tally)}`);
});
