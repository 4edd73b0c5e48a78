/**
 * A soak: rounds of load and disturbances, each on a log of its own, until the time is over or the
 * disturbances are. What comes is decided by the seed, when it comes by the machine.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { RuntimeName } from "../support/runtimes.ts";
import { randomInteger } from "../support/random.ts";
import { LOAD_MS_MAX, ROUND_BATCHES_MAX } from "./bounds.ts";
import type { Disturbance } from "./disturbances.ts";
import { runRound } from "./round.ts";
import { Tally } from "./tally.ts";
import { Vitals } from "./vitals.ts";
import { randomOf } from "./workload.ts";

/** Between two lines of progress. */
const PROGRESS_MS = 10_000;

export interface SoakOptions {
  /** Existing folder; that of a log is made in it. */
  dir: string;
  seed: number;
  /** Each start takes one of them. */
  runtimes: readonly RuntimeName[];
  /** What happens, in shuffled order, again and again; once when there is no duration. */
  deck: readonly Disturbance[];
  /** How long; absent: until the deck is through. */
  durationMs?: number;
  /** The longest load between two disturbances; LOAD_MS_MAX if absent. */
  loadMsMax?: number;
  /** Batches of one log at the most; ROUND_BATCHES_MAX if absent. */
  roundBatchesMax?: number;
  /** Size at which the service seals its tail; ROTATE_BYTES if absent. */
  rotateBytes?: number;
  /** Takes lines of progress. */
  report: (line: string) => void;
  /** Gives up. */
  signal: AbortSignal;
}

/** What a soak that found nothing wrong has done. */
export interface SoakResult {
  tally: Tally;
  /** Memory and descriptors, in words. */
  vitals: string;
  elapsedMs: number;
}

/** Something is wrong; the folder of the log is kept. */
export class SoakError extends Error {
  override name = "SoakError";
  /** Folder of the deployment. */
  readonly dir: string;

  constructor(dir: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.dir = dir;
  }
}

/** @throws {SoakError} when something is wrong with the service, or it is given up. */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const { seed, runtimes, rotateBytes, report, signal } = options;
  const { loadMsMax = LOAD_MS_MAX, roundBatchesMax = ROUND_BATCHES_MAX } = options;
  const [tally, vitals, startMs] = [new Tally(), new Vitals(), performance.now()];
  const elapsedMs = () => performance.now() - startMs;
  const timer = setInterval(() => {
    report(`${Math.round(elapsedMs() / 1000)} s: ${tally}; ${vitals.latest}`);
  }, PROGRESS_MS);
  const nextDisturbance = dealFrom(options, elapsedMs);
  const shared = { seed, runtimes, rotateBytes, tally, vitals, signal, loadMsMax, roundBatchesMax };
  let isOver = false;
  const next = () => {
    const disturbance = nextDisturbance();
    isOver = disturbance === null;
    return disturbance;
  };
  try {
    for (let number = 0; !isOver; number++) {
      const dir = await mkdtemp(join(options.dir, "soak-"));
      const round = { ...shared, number, dir, nextDisturbance: next };
      await orSoakError(dir, () => runRound(round));
      if (isOver) await orSoakError(dir, () => void vitals.conclude());
      await rm(dir, { recursive: true });
    }
  } finally {
    clearInterval(timer);
  }
  return { tally, vitals: vitals.conclude(), elapsedMs: elapsedMs() };
}

async function orSoakError(dir: string, work: () => Promise<void> | void): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw new SoakError(dir, error);
  }
}

/** Deals a deck in shuffled order, and a new one when it is through. */
function dealFrom({ deck, seed, durationMs }: SoakOptions, elapsedMs: () => number) {
  const random = randomOf(seed, "deck");
  let left = [...deck];
  return () => {
    if (durationMs === undefined ? left.length === 0 : elapsedMs() >= durationMs) return null;
    if (left.length === 0) left = [...deck];
    return left.splice(randomInteger(random, 0, left.length - 1), 1)[0]!;
  };
}
