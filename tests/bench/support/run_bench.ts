/** Runs this repository's benchmarks. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Report } from "../../../bench/support/report.ts";
import { type CliExit, type CliOptions, spawnScript } from "../../../tools/support/program.ts";

/** Runs a benchmark to completion. @returns its exit status and output, even if it failed. */
export function startBench(name: string, args: string[], options: CliOptions = {}) {
  const script = fileURLToPath(new URL(`../../../bench/${name}.ts`, import.meta.url));
  return spawnScript(script, args, { permissions: ["--allow-all"], ...options }).exited;
}

/** Runs a benchmark in `folder`, where it writes its report. The benchmark must succeed. */
export async function runBench(
  name: string,
  folder: string,
  args: string[],
  options: CliOptions = {},
): Promise<CliExit & { report: Report }> {
  const jsonPath = join(folder, "report.json");
  const exit = await startBench(name, [...args, "--dir", folder, "--json", jsonPath], options);
  assert.equal(exit.code, 0, exit.stderr);
  return { ...exit, report: JSON.parse(await readFile(jsonPath, "utf8")) };
}
