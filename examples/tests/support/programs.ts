/** Runs the examples that are not TypeScript, if the programs they need are installed. */
import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findProgram } from "../../../tools/support/find_program.ts";
import { cliCommand } from "../../../tools/support/program.ts";
import { writeFile } from "node:fs/promises";

const EXAMPLES = fileURLToPath(new URL("../../", import.meta.url));
const TIMEOUT_MS = 120_000;

/** Returns the options for a test that needs these programs. */
export function needs(...names: string[]): { skip: string | false } {
  const missing = names.filter((name) => findProgram(name) === null);
  return { skip: missing.length > 0 && `${missing.join(", ")} not installed (packaged in Debian)` };
}

/** Returns the path of an example. */
export function exampleAt(path: string): string {
  return EXAMPLES + path;
}

/** Runs a command and blocks until it exits, so a service in this process cannot respond. */
export function run(command: string[], input = ""): SpawnSyncReturns<string> {
  const [program, ...args] = command;
  return spawnSync(program!, args, { encoding: "utf8", input, timeout: TIMEOUT_MS });
}

/** Writes an executable script that runs the command line under test. */
export async function writeCommand(path: string): Promise<void> {
  const words = cliCommand([]).map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  await writeFile(path, `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`, { mode: 0o755 });
}
