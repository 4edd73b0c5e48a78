/** Entry point of the command line. */
import process from "node:process";
import { reportFailure, run } from "./src/commands/run.ts";
import { TERMINAL } from "./src/commands/terminal.ts";
import { endProcess } from "./src/runtime/end_process.ts";

// After an uncaught error the state of the program is unknown: report it and exit.
for (const event of ["uncaughtException", "unhandledRejection"]) {
  process.on(event, (error) => endProcess(reportFailure(error, TERMINAL)));
}

endProcess(await run(process.argv.slice(2), TERMINAL));
