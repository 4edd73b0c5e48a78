/**
 * Random histories of many clients against a sequential model. MODEL_HISTORIES says how many; history n
 * of a run with SEED s is history 0 of one with SEED s + n.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import type { History } from "../support/history.ts";
import { checkHistory } from "../support/history_check.ts";
import { runHistory } from "../support/history_driver.ts";
import { seededRandom, testSeed } from "../support/random.ts";
import { ServiceTarget } from "../support/service_target.ts";

const HISTORIES = Number(process.env.MODEL_HISTORIES ?? 200);

/** What must have happened somewhere in so many histories, or the test looks at too little. */
const EXPECTED_ANSWERS = [
  "committed",
  "duplicate",
  "retired",
  "already_retired",
  "batch_id_conflict",
  "source_retired",
  "source_lineage_conflict",
  "stream_frontier_conflict",
  "source_not_found",
  "storage_full",
  "writer_poisoned",
  "none",
];

async function checkedHistory(seed: number): Promise<History> {
  const random = seededRandom(seed);
  const target = await ServiceTarget.open(random);
  const history = await runHistory(random, target);
  await target.close();
  checkHistory(history);
  return history;
}

const seed = testSeed();

test(`append() and retire() of many clients fit an order of one after the other (SEED=${seed})`, async () => {
  const answers = new Map<string, number>();
  for (let number = 0; number < HISTORIES; number++) {
    const { calls } = await checkedHistory(seed + number).catch((error) => {
      const again = `run again with SEED=${seed + number} MODEL_HISTORIES=1`;
      throw new Error(`history ${number}: ${again}`, { cause: error });
    });
    for (const { outcome } of calls) {
      const answer = String(outcome?.body.status ?? outcome?.body.error ?? "none");
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  }
  if (HISTORIES < 100) return;
  const missing = EXPECTED_ANSWERS.filter((answer) => !answers.has(answer));
  assert.deepEqual(missing, [], `of the answers ${JSON.stringify([...answers])}`);
});
