/** The executable: arguments -> one command -> exit status. */
import process from "node:process";
import { reportFailure, run } from "./src/commands/run.ts";
import { TERMINAL } from "./src/commands/terminal.ts";

// An error that reached no one leaves the program in a state nobody knows: say so and end.
for (const event of ["uncaughtException", "unhandledRejection"]) {
  process.on(event, (error) => process.exit(reportFailure(error, TERMINAL)));
}

process.exit(await run(process.argv.slice(2), TERMINAL));
