/** The available JavaScript runtimes, and how each runs a script in this source tree. */
import { existsSync } from "node:fs";
import process from "node:process";

export type RuntimeName = "deno" | "node";

/** The runtime that runs this test. */
export const THIS_RUNTIME: RuntimeName = "deno" in process.versions ? "deno" : "node";

const VARIABLES = { deno: "SERVICE_TEST_DENO", node: "SERVICE_TEST_NODE" } as const;

/** Returns a runtime's executable; null if it is the other runtime and its variable is not set. */
export function executableOf(name: RuntimeName): string | null {
  return name === THIS_RUNTIME ? process.execPath : process.env[VARIABLES[name]] ?? null;
}

/** Without `npm ci`, Deno takes packages from its own cache instead of `node_modules`. */
const PACKAGES = existsSync(new URL("../../node_modules", import.meta.url))
  ? []
  : ["--node-modules-dir=none"];

/** Returns the arguments that precede a script's path. */
export function runtimeArgs(
  name: RuntimeName,
  denoFlags: string[],
  nodeFlags: string[] = [],
): string[] {
  return name === "deno" ? ["run", "--quiet", "--no-prompt", ...PACKAGES, ...denoFlags] : nodeFlags;
}

/** Returns why tests that need an absent runtime are skipped, and which variable to set. */
export function absenceOf(name: RuntimeName): string {
  return `${name} is not available: set ${VARIABLES[name]} to its executable`;
}

/**
 * Path of the program that tests run instead of `cli.ts` under their own runtime: a compiled
 * executable, or any program with the same command line. Set by SERVICE_TEST_EXECUTABLE.
 */
export const TESTED_EXECUTABLE: string | undefined = process.env.SERVICE_TEST_EXECUTABLE;
