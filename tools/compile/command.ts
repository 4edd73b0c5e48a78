/** The command line that the compiler gets. */
import { HEAP_FLAGS } from "../../src/commands/heap_bounds.ts";

/**
 * No subprocess, no FFI, of the environment what the terminal is. Folders and the socket are named
 * by a configuration that is read when the program runs, so they cannot be narrowed here.
 */
const PERMISSIONS = ["--allow-read", "--allow-write", "--allow-net"];

export interface Compilation {
  /** Triple of the target; undefined for the machine this runs on. */
  triple: string | undefined;
  /** Path of the executable to make. */
  output: string;
  /** Modules that threads are started with, which no import tells. */
  workers: string[];
}

/**
 * Arguments of `deno` for a compilation in a staged folder.
 *
 * A code cache would lie in the system's temporary folder, under a name that anyone can guess and
 * put a file at, and what is in it is run. The start does without.
 */
export function compileArguments({ triple, output, workers }: Compilation): string[] {
  return [
    "compile",
    "--quiet",
    "--no-check",
    "--no-lock",
    "--no-code-cache",
    "--no-prompt",
    ...PERMISSIONS,
    // The runtime takes no such flag after its start (src/commands/heap_bounds.ts).
    `--v8-flags=${HEAP_FLAGS.join(",")}`,
    ...triple === undefined ? [] : ["--target", triple],
    ...workers.flatMap((path) => ["--include", path]),
    "--output",
    output,
    "cli.js",
  ];
}
