/**
 * Arguments -> one command -> exit status. The only place that turns errors into exit statuses. The
 * modules of a command are loaded when it is run: to load those of all would take as long as to
 * verify 100,000 events.
 */
import { AssertionError } from "../assert.ts";
import { CorruptLogError, UnsupportedFormatError } from "../log/storage/errors.ts";
import { FULL_VERSION, VERSION } from "../version.ts";
import { helpLine, type Invocation, parseArguments } from "./arguments.ts";
import { completionsFor } from "./completions.ts";
import { loadConfig } from "./config.ts";
import { CommandError, EXIT_FAILURE, EXIT_OK, EXIT_UNSUPPORTED, EXIT_USAGE } from "./exit.ts";
import { manPage } from "./man_page.ts";
import { describeError } from "./system_error.ts";
import type { Terminal } from "./terminal.ts";
import { usageText } from "./usage.ts";

/** Runs the program. Never throws: what goes wrong is reported and has an exit status. */
export async function run(args: string[], terminal: Terminal): Promise<number> {
  let invocation: Invocation;
  try {
    invocation = parseArguments(args);
  } catch (error) {
    const status = reportFailure(error, terminal);
    if (status === EXIT_USAGE) terminal.report(`Run ${helpLine(args)} for usage`);
    return status;
  }
  try {
    await runCommand(invocation, terminal);
    return EXIT_OK;
  } catch (error) {
    return reportFailure(error, terminal);
  }
}

async function runCommand(invocation: Invocation, terminal: Terminal): Promise<void> {
  const { report } = terminal;
  switch (invocation.command) {
    case "help":
      return terminal.print(usageText(invocation.about));
    case "version":
      return terminal.print(`${FULL_VERSION}\n`);
    case "completions":
      return terminal.print(completionsFor(invocation.shell));
    case "man":
      return terminal.print(manPage(VERSION));
    case "init": {
      const { init } = await import("./init.ts");
      const outcome = await init(invocation.dir, report);
      return report(`${outcome} ${invocation.dir}`);
    }
    case "serve": {
      const { serve } = await import("./serve.ts");
      return await serve(await loadConfig(invocation.configPath), { report });
    }
    case "seal": {
      const { seal } = await import("./seal.ts");
      return await seal(await loadConfig(invocation.configPath), terminal);
    }
    case "verify": {
      const { verify } = await import("./verify.ts");
      const { chain } = invocation;
      return await verify(await loadConfig(invocation.configPath), { chain, terminal });
    }
  }
}

/** Tells on standard error what went wrong. @returns the exit status that says so. */
export function reportFailure(error: unknown, terminal: Terminal): number {
  if (error instanceof CommandError) {
    terminal.reportError(error.message);
    return error.exitStatus;
  }
  terminal.reportError(reasonOf(error));
  return error instanceof UnsupportedFormatError ? EXIT_UNSUPPORTED : EXIT_FAILURE;
}

function reasonOf(error: unknown): string {
  if (isDefect(error)) return `defect in this program: ${error.stack}`;
  // No crash makes this: only an older copy helps, and the damaged one may tell what it was.
  const advice = "; copy the folder aside, then restore it from a backup";
  return describeError(error) + (error instanceof CorruptLogError ? advice : "");
}

/** Errors that no disk and no user can cause: only their stack helps. */
function isDefect(error: unknown): error is Error {
  return error instanceof AssertionError || error instanceof TypeError ||
    error instanceof RangeError || error instanceof ReferenceError;
}
