/** Command-line entry point. Checks the runtime's version before loading the program. */
import process from "node:process";
import { IS_TEST_BUILD } from "./src/revision.ts";
import { runtimeFault } from "./src/runtime/runtime_version.ts";

/** Runs the program and ends the process. */
async function main(): Promise<void> {
  const { reportFailure, run } = await import("./src/commands/run.ts");
  const { catchSignals } = await import("./src/commands/signals.ts");
  const { TERMINAL } = await import("./src/commands/terminal.ts");
  const { endProcess } = await import("./src/runtime/end_process.ts");

  // After an uncaught error, the program's state is unknown, so report the error and exit.
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (error) => endProcess(reportFailure(error, TERMINAL)));
  }

  // `serve` replaces `report`.
  const stop = catchSignals((line) => terminal.report(line));
  const terminal = { ...TERMINAL, stop };
  endProcess(await run(process.argv.slice(2), terminal));
}

/** Reports why the program cannot be loaded. */
function refuse(fault: string): void {
  process.stderr.write(`${fault}\n`);
  process.exitCode = 1;
}

const fault = runtimeFault();
if (fault === null || IS_TEST_BUILD) {
  await main().catch((error) => {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    refuse("packages are missing: in a clone, run npm ci --omit=dev");
  });
} else {
  refuse(fault);
}
