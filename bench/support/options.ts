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
  /** Number of starts. Their median is reported. */
  starts: number;
  /** Names of the rows to run. */
  rows: string[];
  jsonPath: string | undefined;
  /** Directory for the deployments; undefined for the system's temporary directory. */
  parent: string | undefined;
}

const WARMUP_SHARE = 0.2;

/**
 * @param allRows names of all rows in the benchmark.
 * @throws {Error} if an option is unknown or invalid.
 */
export function parseBenchOptions(args: string[], allRows: string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      "server-runtime": { type: "string", default: ownRuntime() },
      seconds: { type: "string", default: "5" },
      events: { type: "string" },
      starts: { type: "string", default: "3" },
      rows: { type: "string", default: allRows.join(",") },
      json: { type: "string" },
      dir: { type: "string" },
    },
  });
  const rows = values.rows.split(",");
  const unknownRow = rows.find((row) => !allRows.includes(row));
  if (unknownRow !== undefined) {
    throw new Error(`unknown row ${unknownRow}; use ${allRows.join(", ")}`);
  }
  const measureMs = positive("--seconds", values.seconds) * 1000;
  return {
    serverRuntime: runtimeNamed(values["server-runtime"]),
    measureMs,
    warmupMs: measureMs * WARMUP_SHARE,
    events: values.events === undefined ? undefined : positive("--events", values.events),
    starts: positive("--starts", values.starts),
    rows,
    jsonPath: values.json,
    parent: values.dir,
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
