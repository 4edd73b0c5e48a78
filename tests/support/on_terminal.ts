/** Runs the command line on a terminal of its own. */
import { spawnSync } from "node:child_process";
import { cliCommand } from "../../tools/support/program.ts";

export interface TerminalRun {
  status: number | null;
  /** All that the terminal got, standard error too. */
  output: string;
}

/**
 * Runs the program to its end.
 * @returns null without the `script` of util-linux, which makes the terminal.
 */
export function runOnTerminal(args: string[]): TerminalRun | null {
  const quoted = cliCommand(args).map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  const { error, status, stdout } = spawnSync("script", ["-qec", quoted, "/dev/null"], {
    encoding: "utf8",
    input: "",
  });
  return error === undefined ? { status, output: stdout } : null;
}
