/**
 * Random histories of many clients against a sequential model. MODEL_HISTORIES says how many;
 * history n of a run with SEED s is history 0 of one with SEED s + n.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { DisturbedService } from "../support/disturbed_service.ts";
import type { Call } from "../support/history.ts";
import { checkHistory } from "../support/history_check.ts";
import { runHistory } from "../support/history_driver.ts";
import type { HistoryTarget } from "../support/history_target.ts";
import { httpTarget } from "../support/http_target.ts";
import { seededRandom, testSeed } from "../../tools/support/random.ts";
import { serviceTarget } from "../support/service_target.ts";
import { withServedLog } from "../contract/support/served_log.ts";

const HISTORIES = Number(process.env.MODEL_HISTORIES ?? 200);
/** Over the socket each takes longer by far. */
const HTTP_HISTORIES = Math.ceil(HISTORIES / 20);

/** What must have happened somewhere in so many histories, or the test looks at too little. */
const HISTORIES_FOR_ALL = 200;
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

/** Runs and checks one history; its calls. */
async function checkedCalls(
  seed: number,
  useTarget: (
    service: DisturbedService,
    use: (target: HistoryTarget) => Promise<void>,
  ) => Promise<void>,
): Promise<Call[]> {
  const random = seededRandom(seed);
  const service = await DisturbedService.open(random);
  const calls: Call[] = [];
  await useTarget(service, async (target) => {
    const history = await runHistory(random, target);
    assert.deepEqual(history.streams, checkHistory(history).streams());
    calls.push(...history.calls);
  });
  await service.close();
  return calls;
}

/** Names the seed in a failure. */
async function withSeed<T>(seed: number, run: (seed: number) => Promise<T>): Promise<T> {
  try {
    return await run(seed);
  } catch (error) {
    const again = `run again with SEED=${seed} MODEL_HISTORIES=1`;
    throw new Error(`a history fits no order: ${again}`, { cause: error });
  }
}

const firstSeed = testSeed();

test(`mutations of many clients fit an order (SEED=${firstSeed})`, async () => {
  const answers = new Map<string, number>();
  for (let seed = firstSeed; seed < firstSeed + HISTORIES; seed++) {
    const calls = await withSeed(
      seed,
      () => checkedCalls(seed, (service, use) => use(serviceTarget(service))),
    );
    for (const { outcome } of calls) {
      const answer = String(outcome?.body.status ?? outcome?.body.error ?? "none");
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  }
  if (HISTORIES < HISTORIES_FOR_ALL) return;
  const missing = EXPECTED_ANSWERS.filter((answer) => !answers.has(answer));
  assert.deepEqual(missing, [], `of the answers ${JSON.stringify([...answers])}`);
});

test(`mutations over HTTP fit an order (SEED=${firstSeed})`, async () => {
  for (let seed = firstSeed; seed < firstSeed + HTTP_HISTORIES; seed++) {
    await withSeed(
      seed,
      () =>
        checkedCalls(
          seed,
          (service, use) =>
            withServedLog(({ socketPath }) => use(httpTarget(socketPath, service)), {
              log: () => service,
            }),
        ),
    );
  }
});
