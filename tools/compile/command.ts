/** Builds the `deno compile` command line. */
import type { Program } from "../build/programs.ts";
import { scriptOf } from "../build/javascript.ts";

/**
 * Permissions: no subprocesses, no FFI, and only the environment variables that the program reads.
 * Directories and the socket are configured at run time, so paths cannot be restricted here.
 */
const PERMISSIONS = [
  "--allow-read",
  "--allow-write",
  "--allow-sys",
  "--allow-net",
];

export interface Compilation {
  /** Target triple; undefined for the host. */
  triple: string | undefined;
  /** Path of the executable. */
  output: string;
  program: Program;
  /** Worker modules, which the compiler cannot discover through imports. */
  workers: string[];
}

/**
 * Arguments to `deno` that compile a staging directory.
 *
 * The code cache is disabled. It would be loaded from a predictable path in the system's temporary
 * directory, where any user could plant a file.
 */
export function compileArguments({ triple, output, program, workers }: Compilation): string[] {
  return [
    "compile",
    "--quiet",
    "--no-check",
    "--no-lock",
    "--no-code-cache",
    "--no-prompt",
    ...PERMISSIONS,
    `--allow-env=${program.variables.join()}`,
    // Garbage is collected earlier, which saves 100 MiB under load.
    "--v8-flags=--heap-growing-percent=50,--max-semi-space-size=8",
    ...triple === undefined ? [] : ["--target", triple],
    ...workers.flatMap((path) => ["--include", path]),
    "--output",
    output,
    scriptOf(program.entry),
  ];
}
