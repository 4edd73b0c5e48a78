/**
 * A soak: rounds of load and faults, each on a new log, until time or faults run out.
 * The seed determines the actions, but not their timing.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { randomInteger } from "../support/random.ts";
import type { Disturbance } from "./disturbances.ts";
import { type LogOptions, runRound } from "./round.ts";
import { Tally } from "./tally.ts";
import { Vitals } from "./vitals.ts";
import { randomOf } from "./workload.ts";

/** Interval between progress lines. */
const PROGRESS_MS = 10_000;

/** Logs are created in the directory. */
export interface SoakOptions extends LogOptions {
  /** Faults, reshuffled for each pass. Without `durationMs`, there is only one pass. */
  deck: readonly Disturbance[];
  /** By default, the soak runs until each fault in the deck has occurred once. */
  durationMs?: number;
  /** Called with each progress line. */
  report: (line: string) => void;
}

/** Statistics from a soak without violations. */
export interface SoakResult {
  tally: Tally;
  vitals: Vitals;
  elapsedMs: number;
}

/** A violation or another failure. The log's directory is kept. */
export class SoakError extends Error {
  override name = "SoakError";
  /** Directory of the deployment. */
  readonly dir: string;

  constructor(dir: string, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.dir = dir;
  }
}

/** @throws {SoakError} on a violation, any other failure, or an abort. */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const { report } = options;
  const [tally, vitals, startMs] = [new Tally(), new Vitals(), performance.now()];
  const elapsedMs = () => performance.now() - startMs;
  const timer = setInterval(() => {
    report(`${Math.round(elapsedMs() / 1000)} s: ${tally}; ${vitals}`);
  }, PROGRESS_MS);
  const nextDisturbance = dealFrom(options, elapsedMs);
  let isOver = false;
  try {
    for (let number = 0; !isOver; number++) {
      const dir = await mkdtemp(join(options.dir, "soak-"));
      try {
        isOver = await runRound({ ...options, number, dir, nextDisturbance, tally, vitals });
      } catch (error) {
        throw new SoakError(dir, error);
      }
      await rm(dir, { recursive: true });
    }
  } finally {
    clearInterval(timer);
  }
  return { tally, vitals, elapsedMs: elapsedMs() };
}

/** Deals a deck in random order, reshuffled for each pass. */
function dealFrom({ deck, seed, durationMs }: SoakOptions, elapsedMs: () => number) {
  const random = randomOf(seed, "deck");
  let left = [...deck];
  return () => {
    if (durationMs === undefined ? left.length === 0 : elapsedMs() >= durationMs) return null;
    if (left.length === 0) left = [...deck];
    return left.splice(randomInteger(random, 0, left.length - 1), 1)[0]!;
  };
}
