/**
 * Crashes at every operation in every sequence of steps, in several torn variants, and crashes
 * again at every operation during the recovery.
 *
 * CRASH_DEPTH=3 enumerates all sequences of up to three steps. By default, all sequences of one
 * step run, and some of two, chosen by SEED. CRASH_STEPS=append,seal runs one sequence.
 */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { randomItem, seededRandom, testSeed } from "../../tools/support/random.ts";
import type { KnownHistory } from "../support/known_history.ts";
import { checkCrashState, type CheckedTrees } from "./support/crash_check.ts";
import {
  CrashPoints,
  FULL_VARIETY,
  SAMPLED_VARIETY,
  SMALL_VARIETY,
} from "./support/crash_points.ts";
import {
  baseOf,
  CrashSession,
  EMPTY_BASE,
  LOG_STEPS,
  type Step,
  STEPS,
} from "./support/crash_session.ts";
import type { Base } from "./support/log_run.ts";

const SAMPLED_PAIRS = 1;
const seed = testSeed();
const { CRASH_STEPS, CRASH_DEPTH } = process.env;
const isSampled = CRASH_STEPS === undefined && CRASH_DEPTH === undefined;
const variety = isSampled ? SAMPLED_VARIETY : FULL_VARIETY;
/** Coverage of the enumeration. */
const tally = { sequences: 0, points: 0, variants: 0, states: 0 };
/** Coverage of crashes during the recovery from a crash. */
const recoveryTally = { points: 0, variants: 0, states: 0 };

/** Runs a sequence. @returns the states that crashes during or after its last step can leave. */
async function crashPointsOf(
  steps: readonly Step[],
  base: Base,
): Promise<CrashPoints<KnownHistory>> {
  const session = new CrashSession(base);
  for (const step of steps.slice(0, -1)) await session.run(step);
  const points = new CrashPoints<KnownHistory>(variety, seed);
  const { machine } = session;
  const known = () => session.known.copy();
  machine.watch = (operation) => points.beforeOperation(machine.disk, operation, known);
  await session.run(steps.at(-1)!);
  points.take(machine.disk, known(), "at the end");
  return points;
}

async function checkSequence(steps: readonly Step[], base: Base): Promise<void> {
  const points = await crashPointsOf(steps, base);
  tally.sequences += 1;
  tally.points += points.points;
  tally.variants += points.variants;
  tally.states += points.states.size;
  const checked: CheckedTrees = { settled: new Set(), goesOn: new Set() };
  /** Number of known receipts when each state was last checked. Within a run, it only grows. */
  const seen = new Map<string, number>();
  for (const [hash, { known }] of points.states) seen.set(hash, known.receipts);
  for (const [place, { tree, known, label }] of [...points.states.values()].entries()) {
    const again = new CrashPoints<KnownHistory>(SMALL_VARIETY, seed + place);
    await labelled(steps, label, () => checkCrashState(tree, known, checked, again));
    recoveryTally.points += again.points;
    recoveryTally.variants += again.variants;
    for (const [secondHash, second] of again.states) {
      if ((seen.get(secondHash) ?? -1) >= known.receipts) continue;
      seen.set(secondHash, known.receipts);
      recoveryTally.states += 1;
      const twice = `${label}; then during recovery ${second.label}`;
      await labelled(steps, twice, () => checkCrashState(second.tree, known, checked));
    }
  }
}

/** Runs `check`. Adds the crash, and a command that reproduces it, to any error from `check`. */
async function labelled(steps: readonly Step[], label: string, check: () => Promise<void>) {
  try {
    await check();
  } catch (error) {
    const again = `SEED=${seed} CRASH_STEPS=${steps.join()} node --test ` +
      "tests/faults/crash_sequences_test.ts";
    throw new Error(`${steps.join(", ")}: ${label}; rerun: ${again}`, { cause: error });
  }
}

/** All sequences of up to `depth` steps. */
function sequencesUpTo(depth: number): Step[][] {
  if (depth === 0) return [];
  const shorter = sequencesUpTo(depth - 1);
  const longest = [[], ...shorter].filter((steps) => steps.length === depth - 1);
  return [...shorter, ...longest.flatMap((steps) => STEPS.map((step) => [...steps, step]))];
}

function sampledPairs(): Step[][] {
  const random = seededRandom(seed);
  return Array.from({ length: SAMPLED_PAIRS }, () => [
    randomItem(random, STEPS),
    randomItem(random, STEPS),
  ]);
}

/** The sequences that start from a non-empty log, and those that start from an empty directory. */
function chosenSequences(): { fromLog: Step[][]; fromNothing: Step[][] } {
  if (CRASH_STEPS !== undefined) {
    const steps = CRASH_STEPS.split(",") as Step[];
    return { fromLog: [steps], fromNothing: [steps] };
  }
  if (CRASH_DEPTH === undefined) {
    return { fromLog: [...sequencesUpTo(1), ...sampledPairs()], fromNothing: sequencesUpTo(1) };
  }
  const depth = Number(CRASH_DEPTH);
  return { fromLog: sequencesUpTo(depth), fromNothing: sequencesUpTo(depth - 1) };
}

test(`no crash loses, duplicates or tears anything (SEED=${seed})`, async () => {
  const startMs = performance.now();
  const { fromLog, fromNothing } = chosenSequences();
  for (const steps of fromNothing) await checkSequence(steps, EMPTY_BASE);
  const base = await baseOf(LOG_STEPS);
  for (const steps of fromLog) await checkSequence(steps, base);
  assert.ok(tally.states > 0);
  if (CRASH_DEPTH === undefined) return;
  const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
  process.stderr.write(`${JSON.stringify({ ...tally, recoveryTally })} in ${seconds} s\n`);
});
