/** Builds the `deno compile` command line. */
/**
 * Permissions: no subprocesses, no FFI, and only the environment variable that systemd sets.
 * Directories and the socket are configured at run time, so paths cannot be restricted here.
 */
const PERMISSIONS = [
  "--allow-read",
  "--allow-write",
  "--allow-sys",
  "--allow-net",
  "--allow-env=JOURNAL_STREAM",
];

export interface Compilation {
  /** Target triple; undefined for the host. */
  triple: string | undefined;
  /** Path of the executable. */
  output: string;
  /** Worker modules, which the compiler cannot discover through imports. */
  workers: string[];
}

/**
 * Arguments to `deno` that compile a staging directory.
 *
 * The code cache is disabled. It would be loaded from a predictable path in the system's temporary
 * directory, where any user could plant a file.
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
    // Garbage is collected earlier, which saves 100 MiB under load.
    "--v8-flags=--heap-growing-percent=50,--max-semi-space-size=8",
    ...triple === undefined ? [] : ["--target", triple],
    ...workers.flatMap((path) => ["--include", path]),
    "--output",
    output,
    "cli.js",
  ];
}
