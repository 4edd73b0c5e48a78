/** The common command line for the benchmarks. */
import process from "node:process";
import { parseArgs } from "node:util";
import { type RuntimeName, THIS_RUNTIME } from "../../tools/support/runtimes.ts";

export interface BenchOptions {
  serverRuntime: RuntimeName;
  /** Measured time for a row. */
  measureMs: number;
  warmupMs: number;
  /** Maximum number of events in one row, or log size; undefined for the benchmark's default. */
  events: number | undefined;
  /** All sizes, if several are given. */
  sizes: number[];
  /** How often each figure is measured. The median is reported. */
  rounds: number;
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
 * Parses the command line.
 * @param allRows names of all rows in the benchmark.
 * @param defaults values of options in this benchmark, where they differ from the common ones.
 * @param ownOptions names of the benchmark's own options, each of which has a value.
 * @throws {Error} if an option is unknown or invalid.
 */
export function parseBenchOptions(
  allRows: readonly string[],
  defaults: Record<string, string> = {},
  ownOptions: readonly string[] = [],
): BenchOptions {
  const names = ["server-runtime", "seconds", "events", "rounds", "rows", "json", "dir"];
  const options = [...names, ...ownOptions].map((name) => [name, { type: "string" }] as const);
  const { values } = parseArgs({ options: Object.fromEntries(options) });
  const valueOf = (name: string) => (values[name] ?? defaults[name]) as string | undefined;
  const measureMs = positive("--seconds", valueOf("seconds") ?? "5") * 1000;
  const sizes = valueOf("events")?.split(",").map((text) => positive("--events", text)) ?? [];
  const serverRuntime = valueOf("server-runtime") ?? THIS_RUNTIME;
  return {
    serverRuntime: oneOf("--server-runtime", ["deno", "node"], serverRuntime),
    measureMs,
    warmupMs: measureMs * WARMUP_SHARE,
    events: sizes[0],
    sizes,
    rounds: positive("--rounds", valueOf("rounds") ?? "3"),
    rows: chosenRows(allRows, valueOf("rows")?.split(",") ?? allRows),
    jsonPath: valueOf("json"),
    parent: valueOf("dir"),
    own: Object.fromEntries(ownOptions.map((name) => [name, valueOf(name)])),
  };
}

/** Returns the rows with these names, or, for what is no name, those that contain it. */
function chosenRows(allRows: readonly string[], wanted: readonly string[]): string[] {
  const matching = (text: string) =>
    allRows.includes(text) ? [text] : allRows.filter((row) => row.includes(text));
  const unknown = wanted.find((text) => matching(text).length === 0);
  if (unknown !== undefined) {
    throw new Error(`unknown row ${unknown}; use ${allRows.join(", ")}`);
  }
  const chosen = new Set(wanted.flatMap(matching));
  return allRows.filter((row) => chosen.has(row));
}

/** @throws {Error} if the string is none of the names. */
export function oneOf<T extends string>(option: string, names: readonly T[], text: string): T {
  const found = names.find((name) => name === text);
  if (found === undefined) throw new Error(`${option} must be one of ${names.join(", ")}`);
  return found;
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
