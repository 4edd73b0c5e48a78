/** Arguments -> one command -> exit status. The only place that turns errors into exit statuses. */
import { AssertionError } from "../assert.ts";
import { UnsupportedFormatError } from "../log/log_error.ts";
import { VERSION } from "../version.ts";
import { type Invocation, parseArguments } from "./arguments.ts";
import { loadConfig } from "./config.ts";
import { CommandError, EXIT_FAILURE, EXIT_OK, EXIT_UNSUPPORTED, EXIT_USAGE } from "./exit.ts";
import { init } from "./init.ts";
import { seal } from "./seal.ts";
import { serve } from "./serve.ts";
import { describeError } from "./system_error.ts";
import type { Terminal } from "./terminal.ts";
import { USAGE } from "./usage.ts";
import { verify } from "./verify.ts";

/** Runs the program. Never throws: what goes wrong is reported and has an exit status. */
export async function run(args: string[], terminal: Terminal): Promise<number> {
  let invocation: Invocation;
  try {
    invocation = parseArguments(args);
  } catch (error) {
    const status = reportFailure(error, terminal);
    if (status === EXIT_USAGE) terminal.report("Run with --help for usage");
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
      return terminal.print(USAGE);
    case "version":
      return terminal.print(`${VERSION}\n`);
    case "init": {
      const outcome = await init(invocation.dir, report);
      return report(`${outcome} ${invocation.dir}`);
    }
    case "serve":
      return await serve(await loadConfig(invocation.configPath), { report });
    case "seal":
      return await seal(await loadConfig(invocation.configPath), terminal);
    case "verify":
      return await verify(await loadConfig(invocation.configPath), {
        chain: invocation.chain,
        terminal,
      });
  }
}

/** Tells on standard error what went wrong. @returns the exit status that says so. */
export function reportFailure(error: unknown, terminal: Terminal): number {
  if (error instanceof CommandError) {
    terminal.report(error.message);
    return error.exitStatus;
  }
  terminal.report(
    isDefect(error) ? `defect in this program: ${error.stack}` : describeError(error),
  );
  return error instanceof UnsupportedFormatError ? EXIT_UNSUPPORTED : EXIT_FAILURE;
}

/** Errors that no disk and no user can cause: only their stack helps. */
function isDefect(error: unknown): error is Error {
  return error instanceof AssertionError || error instanceof TypeError ||
    error instanceof RangeError || error instanceof ReferenceError;
}
