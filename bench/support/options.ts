/** The common command line for the benchmarks. */
import process from "node:process";
import { parseArgs } from "node:util";
import { ownRuntime, type RuntimeName, RUNTIMES } from "./deployment.ts";

export interface BenchOptions {
  serverRuntime: RuntimeName;
  /** Measured time for a row. */
  measureMs: number;
  warmupMs: number;
  /** Maximum number of events in one row, or log size; undefined for the benchmark's default. */
  events: number | undefined;
  /** Number of starts or rounds. Their median is reported. */
  starts: number;
  /** Names of the rows to run. */
  rows: string[];
  jsonPath: string | undefined;
  /** Directory for the deployments; undefined for the system's temporary directory. */
  parent: string | undefined;
  /** Values of the benchmark's own options. */
  own: Record<string, string | undefined>;
}

const WARMUP_SHARE = 0.2;

/**
 * @param allRows names of all rows in the benchmark.
 * @param ownOptions names of the benchmark's own options, each of which has a value.
 * @throws {Error} if an option is unknown or invalid.
 */
export function parseBenchOptions(
  args: string[],
  allRows: readonly string[],
  ownOptions: readonly string[] = [],
): BenchOptions {
  const defaults: Record<string, string | undefined> = {
    "server-runtime": ownRuntime(),
    seconds: "5",
    events: undefined,
    starts: "3",
    rows: allRows.join(","),
    json: undefined,
    dir: undefined,
  };
  const names = [...Object.keys(defaults), ...ownOptions];
  const options = names.map((name) => [name, { type: "string" }] as const);
  const { values } = parseArgs({ args, options: Object.fromEntries(options) });
  const valueOf = (name: string) => values[name] as string | undefined ?? defaults[name];
  const rows = valueOf("rows")!.split(",");
  const unknownRow = rows.find((row) => !allRows.includes(row));
  if (unknownRow !== undefined) {
    throw new Error(`unknown row ${unknownRow}; use ${allRows.join(", ")}`);
  }
  const measureMs = positive("--seconds", valueOf("seconds")!) * 1000;
  const events = valueOf("events");
  return {
    serverRuntime: runtimeNamed(valueOf("server-runtime")!),
    measureMs,
    warmupMs: measureMs * WARMUP_SHARE,
    events: events === undefined ? undefined : positive("--events", events),
    starts: positive("--starts", valueOf("starts")!),
    rows,
    jsonPath: valueOf("json"),
    parent: valueOf("dir"),
    own: Object.fromEntries(ownOptions.map((name) => [name, valueOf(name)])),
  };
}

/** @throws {Error} if no runtime has that name. */
export function runtimeNamed(text: string): RuntimeName {
  const runtime = RUNTIMES.find((name) => name === text);
  if (runtime === undefined) {
    throw new Error(`--server-runtime must be one of ${RUNTIMES.join(", ")}`);
  }
  return runtime;
}

/** @throws {Error} if the string is not a number above 0. */
export function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < Infinity)) throw new Error(`${name} must be above 0, got ${text}`);
  return value;
}

/** Prints a progress line to standard error. */
export function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Runs a benchmark; on failure, prints the reason on one line and exits with status 1. */
export async function runBench(bench: () => Promise<void>): Promise<void> {
  try {
    await bench();
  } catch (error) {
    progress(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
