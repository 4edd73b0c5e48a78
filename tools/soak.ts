/**
 * `deno task soak [--minutes N] [--seed S] [--runtime deno|node] [--dir DIR]`, or `node
 * tools/soak.ts`: runs a mixed load on the real service while it is killed, stopped, sealed and
 * frozen, and checks everything that it acknowledged and returned. Prints progress to standard
 * error every ten seconds, and the result to standard output. Exit status 0: no violation. 1: a
 * violation; the log is kept. 2: invalid arguments.
 */
import { rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import process from "node:process";
import { inspect, parseArgs } from "node:util";
import { endProcess } from "../src/runtime/end_process.ts";
import { absenceOf, executableOf, type RuntimeName, THIS_RUNTIME } from "./support/runtimes.ts";
import { SOAK_DECK } from "./soak/disturbances.ts";
import { runSoak, SoakError, type SoakResult } from "./soak/run.ts";

const EXIT_WRONG = 1;
const EXIT_USAGE = 2;
const MINUTES_DEFAULT = "10";
const MINUTE_MS = 60_000;
const SEED_MAX = 2 ** 31;
const RUNTIMES: readonly RuntimeName[] = ["deno", "node"];

interface Arguments {
  minutes: number;
  seed: number;
  runtimes: RuntimeName[];
  dir: string;
}

/** @throws {Error} naming the invalid argument. */
async function readArguments(args: string[]): Promise<Arguments> {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: "string", default: MINUTES_DEFAULT },
      seed: { type: "string", default: String(Math.floor(Math.random() * SEED_MAX)) },
      runtime: { type: "string" },
      dir: { type: "string", default: tmpdir() },
    },
  });
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (!(minutes > 0 && minutes < Infinity)) {
    throw new Error(`--minutes must be a positive number, got ${values.minutes}`);
  }
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed must be an integer, got ${values.seed}`);
  const { dir } = values;
  const isFolder = (await stat(dir).catch(() => null))?.isDirectory() ?? false;
  if (!isFolder) throw new Error(`--dir must be an existing directory, got ${dir}`);
  return { minutes, seed, dir, runtimes: chooseRuntimes(values.runtime) };
}

/** Returns the named runtime, or all available ones. */
function chooseRuntimes(named: string | undefined): RuntimeName[] {
  if (named === undefined) return RUNTIMES.filter((name) => executableOf(name) !== null);
  const runtime = RUNTIMES.find((name) => name === named);
  if (runtime === undefined) throw new Error(`--runtime must be ${RUNTIMES.join(" or ")}`);
  if (executableOf(runtime) === null) throw new Error(absenceOf(runtime));
  return [runtime];
}

function describe({ tally, vitals, elapsedMs }: SoakResult): string {
  const mib = Math.round(tally.of("payloadBytes") / 2 ** 20);
  const minutes = (elapsedMs / MINUTE_MS).toFixed(1);
  return `${minutes} minutes, ${tally}, ${mib} MiB of payloads, ${vitals}`;
}

async function soak({ minutes, seed, runtimes, dir }: Arguments): Promise<void> {
  const again = `seed ${seed}, service on ${runtimes.join(" and ")}, clients on ${THIS_RUNTIME}`;
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => stopped.abort(new Error(`stopped by ${signal}`)));
  }
  const report = (line: string) => void process.stderr.write(`${line}\n`);
  report(`running a soak of ${minutes} minutes in ${dir}: ${again}`);
  try {
    const result = await runSoak({
      dir,
      seed,
      runtimes,
      deck: SOAK_DECK,
      durationMs: minutes * MINUTE_MS,
      report,
      signal: stopped.signal,
    });
    process.stdout.write(`soak passed: ${describe(result)} (${again})\n`);
  } catch (error) {
    if (!(error instanceof SoakError)) throw error;
    process.stdout.write(`${await describeFailure(error, stopped.signal)} (${again})\n`);
    process.exitCode = EXIT_WRONG;
  }
}

/** Returns the result line, and removes the files of an interrupted soak. */
async function describeFailure(error: SoakError, stopped: AbortSignal): Promise<string> {
  const [reason] = error.message.split("\n");
  if (stopped.aborted && error.cause === stopped.reason) {
    await rm(error.dir, { recursive: true });
    return `soak ${reason}, no violation so far`;
  }
  process.stderr.write(`${inspect(error.cause)}\n`);
  return `soak failed: ${reason}; the log is in ${error.dir}`;
}

let given: Arguments | null = null;
try {
  given = await readArguments(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = EXIT_USAGE;
}
if (given !== null) await soak(given);
// End explicitly, because idle keep-alive connections would keep the process alive.
endProcess(Number(process.exitCode ?? 0));
