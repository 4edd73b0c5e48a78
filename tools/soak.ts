/**
 * `deno task soak [--minutes N] [--seed S] [--runtime deno|node]`, or `node tools/soak.ts`: runs a
 * mixed load on the real service while it is killed, stopped, sealed and frozen, and checks
 * everything that it acknowledged and returned. Prints progress to standard error every ten
 * seconds, and the result to standard output. Exit status 0: no violation. 1: a violation; the log
 * is kept. 2: invalid arguments.
 */
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import process from "node:process";
import { inspect, parseArgs } from "node:util";
import { SEED } from "./support/random.ts";
import { report, runTool, stopSignal } from "./support/run_tool.ts";
import { absenceOf, executableOf, type RuntimeName, THIS_RUNTIME } from "./support/runtimes.ts";
import { SOAK_DECK } from "./soak/disturbances.ts";
import { runSoak, SoakError } from "./soak/run.ts";

const EXIT_OK = 0;
const EXIT_WRONG = 1;
const MINUTES_DEFAULT = "10";
const MINUTE_MS = 60_000;
const MIB = 1024 * 1024;
const RUNTIMES: readonly RuntimeName[] = ["deno", "node"];

type Arguments = ReturnType<typeof readArguments>;

/** @throws {Error} naming the invalid argument. */
function readArguments(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: MINUTES_DEFAULT },
      seed: { type: "string", default: String(SEED) },
      runtime: { type: "string" },
    },
  });
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (!(minutes > 0 && minutes < Infinity)) {
    throw new Error(`--minutes must be a positive number, got ${values.minutes}`);
  }
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed must be an integer, got ${values.seed}`);
  return { minutes, seed, runtimes: chooseRuntimes(values.runtime) };
}

/** Returns the named runtime, or all available ones. */
function chooseRuntimes(named: string | undefined): RuntimeName[] {
  if (named === undefined) return RUNTIMES.filter((name) => executableOf(name) !== null);
  const runtime = RUNTIMES.find((name) => name === named);
  if (runtime === undefined) throw new Error(`--runtime must be ${RUNTIMES.join(" or ")}`);
  if (executableOf(runtime) === null) throw new Error(absenceOf(runtime));
  return [runtime];
}

async function soak({ minutes, seed, runtimes }: Arguments): Promise<number> {
  const again = `seed ${seed}, service on ${runtimes.join(" and ")}, clients on ${THIS_RUNTIME}`;
  const signal = stopSignal();
  report(`running a soak of ${minutes} minutes: ${again}`);
  try {
    const { tally, vitals, elapsedMs } = await runSoak({
      ...{ dir: tmpdir(), seed, runtimes, deck: SOAK_DECK, report, signal },
      durationMs: minutes * MINUTE_MS,
    });
    const mib = Math.round(tally.of("payloadBytes") / MIB);
    const done = `${(elapsedMs / MINUTE_MS).toFixed(1)} minutes, ${tally}, ${mib} MiB of payloads`;
    process.stdout.write(`soak passed: ${done}, ${vitals} (${again})\n`);
    return EXIT_OK;
  } catch (error) {
    if (!(error instanceof SoakError)) throw error;
    process.stdout.write(`${await describeFailure(error, signal)} (${again})\n`);
    return EXIT_WRONG;
  }
}

/** Returns the result line, and removes the files of an interrupted soak. */
async function describeFailure(error: SoakError, stopped: AbortSignal): Promise<string> {
  const [reason] = error.message.split("\n");
  if (stopped.aborted && error.cause === stopped.reason) {
    await rm(error.dir, { recursive: true });
    return `soak ${reason}, no violation so far`;
  }
  report(inspect(error.cause));
  return `soak failed: ${reason}; the log is in ${error.dir}`;
}

await runTool(readArguments, soak);
