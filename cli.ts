/** The executable: arguments -> one command -> exit status. */
import process from "node:process";
import { reportFailure, run } from "./src/commands/run.ts";
import { TERMINAL } from "./src/commands/terminal.ts";
import { endProcess } from "./src/runtime/end_process.ts";

// An error that reached no one leaves the program in a state nobody knows: say so and end.
for (const event of ["uncaughtException", "unhandledRejection"]) {
  process.on(event, (error) => endProcess(reportFailure(error, TERMINAL)));
}

endProcess(await run(process.argv.slice(2), TERMINAL));
