/** The command line of the compiler. */
import { HEAP_FLAGS } from "../../src/commands/heap_bounds.ts";

/**
 * Permissions: no subprocesses, no FFI, and only the environment variable that systemd sets.
 * Folders and the socket are named in a configuration read at run time, so they can't be narrowed
 * here.
 */
const PERMISSIONS = ["--allow-read", "--allow-write", "--allow-net", "--allow-env=JOURNAL_STREAM"];

export interface Compilation {
  /** Triple of the target; undefined for this machine. */
  triple: string | undefined;
  /** Path of the executable. */
  output: string;
  /** Worker modules, which no import reveals. */
  workers: string[];
}

/**
 * Arguments of `deno` for a compilation in a staged folder.
 *
 * There is no code cache: it would be executed from a predictable path in the system's temporary
 * folder, where anyone could plant a file.
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
    // This flag has no effect after the runtime has started (src/commands/heap_bounds.ts).
    `--v8-flags=${HEAP_FLAGS.join(",")}`,
    ...triple === undefined ? [] : ["--target", triple],
    ...workers.flatMap((path) => ["--include", path]),
    "--output",
    output,
    "cli.js",
  ];
}
