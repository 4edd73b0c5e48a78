/**
 * Runs one command and maps its errors to exit statuses. Loads only that command's modules, since
 * loading all of them takes as long as verifying 100,000 events.
 */
import { AssertionError } from "../assert.ts";
import { CorruptLogError, UnsupportedFormatError } from "../log/storage/errors.ts";
import { describeError } from "../log/storage/system_error.ts";
import { runtimeFault } from "../runtime/runtime_version.ts";
import { type Invocation, parseArguments } from "./arguments.ts";
import { DEFAULT_CONFIG_PATH, PROGRAM } from "./command_table.ts";
import { loadConfig } from "./config.ts";
import { CommandError, EXIT_FAILURE, EXIT_OK, EXIT_UNSUPPORTED, EXIT_USAGE } from "./exit.ts";
import { addTimes, type Output, type Terminal } from "./terminal.ts";

/** Runs the program and returns its exit status. Reports errors and never throws. */
export async function run(args: string[], terminal: Terminal): Promise<number> {
  let invocation: Invocation;
  try {
    invocation = parseArguments(args);
  } catch (error) {
    const status = reportFailure(error, terminal);
    if (status === EXIT_USAGE) terminal.report(`Run ${PROGRAM} --help for usage`);
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
  if ("text" in invocation) return terminal.print(invocation.text);
  const { command, dir = ".", options } = invocation;
  if (command === "init") {
    const { init } = await import("./init.ts");
    return terminal.report(`${await init(dir)} ${dir}`);
  }
  const config = await loadConfig(options.config ?? DEFAULT_CONFIG_PATH);
  switch (command) {
    case "serve": {
      const { serve } = await import("./serve.ts");
      addTimes(terminal);
      // Only a build for tests gets here with a runtime that is too old.
      const fault = runtimeFault();
      if (fault !== null) terminal.report(`this build is only for tests: ${fault}`);
      return await serve(config, terminal);
    }
    case "seal":
      return await (await import("./seal.ts")).seal(config, terminal);
    case "verify":
      return await (await import("./verify.ts")).verify(config, options, terminal);
    case "append":
      return await (await import("./append.ts")).append(config, options, terminal);
    case "tail":
      return await (await import("./tail.ts")).tail(config, options, terminal);
    case "streams":
      return await (await import("./streams.ts")).streams(config, options, terminal);
    case "backup":
      return await (await import("./backup.ts")).backup(config, dir, options, terminal);
  }
}

/** Reports an error on standard error. @returns the exit status. */
export function reportFailure(error: unknown, terminal: Output): number {
  if (error instanceof CommandError) {
    terminal.report(error.message);
    return error.exitStatus;
  }
  terminal.report(reasonOf(error));
  return error instanceof UnsupportedFormatError ? EXIT_UNSUPPORTED : EXIT_FAILURE;
}

/** Errors that are bugs, which are reported with their stack trace. */
const DEFECTS = [AssertionError, TypeError, RangeError, ReferenceError];

function reasonOf(error: unknown): string {
  const defect = DEFECTS.some((type) => error instanceof type);
  if (defect) return `bug in this program: ${(error as Error).stack}`;
  // A crash never corrupts a log, so keep the damaged files, which may reveal the cause.
  const advice = "; keep a copy of the log directory, then restore it from a backup";
  return describeError(error) + (error instanceof CorruptLogError ? advice : "");
}
