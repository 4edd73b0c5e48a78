/**
 * Makes every operation in a run (service, seal, service) fail in turn, in every possible way. By
 * default, SEED chooses a sample of these faults. FAULT_POINTS=0.1 injects a tenth of them,
 * FAULT_POINTS=all injects all, and FAULT_POINT=12 makes only operation 12 fail, in every way.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { appendBytes } from "../support/corrupt.ts";
import type { KnownHistory } from "../support/known_history.ts";
import { type Random, seededRandom, testSeed } from "../../tools/support/random.ts";
import type { Operation } from "../support/simulated_disk.ts";
import { commitOffsets, tailOf, withTail } from "../support/test_log.ts";
import { checkCrashState, type CheckedTrees } from "./support/crash_check.ts";
import { CrashPoints, SMALL_VARIETY, type Variety } from "./support/crash_points.ts";
import { baseOf, LOG_STEPS } from "./support/crash_session.ts";
import { plansFor } from "./support/fault_plans.ts";
import { type Ending, FaultedRun } from "./support/faulted_run.ts";
import type { Base } from "./support/log_run.ts";

/** Share of the fault points tested without FAULT_POINTS. */
const SAMPLED = 0.01;
const ENDINGS: readonly Ending[] = ["close", "kill"];
const VARIETY: Variety = { ...SMALL_VARIETY, randomStates: 3 };

const seed = testSeed();

/** The log followed by part of a commit, as after a crash during the commit's write. */
function withRemnant({ tree, known }: Base): Base {
  const tail = tailOf(tree);
  const cut = tail.subarray(commitOffsets(tail).at(-2), tail.length - 100);
  return { tree: withTail(tree, appendBytes(tail, cut)), known };
}

/** A fault to inject. */
interface FaultPoint {
  /** Number of the operation, from 1. */
  number: number;
  /** Index of the fault plan among the plans for this operation. */
  place: number;
  ending: Ending;
}

/** Runs with one fault. @returns the fault that occurred and the number of states checked. */
async function tryPoint(base: Base, { number, place, ending }: FaultPoint) {
  const points = new CrashPoints<KnownHistory>(VARIETY, seed);
  const run = new FaultedRun(
    base,
    (operation, count) => count === number ? plansFor(operation)[place] ?? null : null,
    ending,
    ({ machine, known }) => points.take(machine.disk, known.copy(), "after a process exit"),
  );
  try {
    await run.run();
    const checked: CheckedTrees = { settled: new Set(), goesOn: new Set() };
    for (const { tree, known } of points.states.values()) {
      await checkCrashState(tree, known, checked);
    }
  } catch (error) {
    const again =
      `SEED=${seed} FAULT_POINT=${number} node --test tests/faults/fault_points_test.ts`;
    const struck = JSON.stringify(run.strike);
    const message = `operation ${number} (${struck}), then ${ending}; rerun: ${again}`;
    throw new Error(message, { cause: error });
  }
  return { strike: run.strike, states: points.states.size };
}

/** All possible faults in a run, determined by a run without faults. */
async function faultPointsOf(base: Base): Promise<FaultPoint[]> {
  const points: FaultPoint[] = [];
  const count = (operation: Operation, number: number) => {
    plansFor(operation).forEach((_, place) => {
      for (const ending of ENDINGS) points.push({ number, place, ending });
    });
    return null;
  };
  await new FaultedRun(base, count, "close", () => {}).run();
  return points;
}

function isChosen(random: Random, { number }: FaultPoint): boolean {
  const { FAULT_POINTS, FAULT_POINT } = process.env;
  if (FAULT_POINT !== undefined) return number === Number(FAULT_POINT);
  return FAULT_POINTS === "all" || random() < Number(FAULT_POINTS ?? SAMPLED);
}

test(`whichever operation fails, nothing acknowledged is lost (SEED=${seed})`, async (context) => {
  const startMs = performance.now();
  // Scans give way after some time, which would change the order of operations between runs.
  const clock = context.mock.method(performance, "now", () => startMs);
  const random = seededRandom(seed);
  const base = withRemnant(await baseOf(LOG_STEPS));
  const tally = { operations: 0, points: 0, states: 0 };
  for (const point of await faultPointsOf(base)) {
    tally.operations = point.number;
    if (!isChosen(random, point)) continue;
    let { strike, states } = await tryPoint(base, point);
    // One read of each MiB is pooled, and changes the order of the operations after it.
    if (strike === null) ({ strike, states } = await tryPoint(base, point));
    if (strike === null) {
      // A run without a shutdown has fewer operations.
      assert.equal(point.ending, "kill", `operation ${point.number} occurs in every run`);
      continue;
    }
    tally.points += 1;
    tally.states += states;
  }
  assert.ok(tally.points > 0);
  if (process.env.FAULT_POINTS === undefined) return;
  clock.mock.restore();
  const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
  process.stderr.write(`${JSON.stringify(tally)} in ${seconds} s\n`);
});
