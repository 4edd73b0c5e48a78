/** Command-line entry point. Checks the runtime's version before loading the program. */
import process from "node:process";

const NODE_VERSION_MIN = [22, 18] as const;

/** Runs the program and ends the process. */
async function main(): Promise<void> {
  const { reportFailure, run } = await import("./src/commands/run.ts");
  const { TERMINAL } = await import("./src/commands/terminal.ts");
  const { endProcess } = await import("./src/runtime/end_process.ts");

  // After an uncaught error, the program's state is unknown, so report the error and exit.
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (error) => endProcess(reportFailure(error, TERMINAL)));
  }

  endProcess(await run(process.argv.slice(2), TERMINAL));
}

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > NODE_VERSION_MIN[0] || major === NODE_VERSION_MIN[0] && minor >= NODE_VERSION_MIN[1]) {
  await main();
} else {
  const needed = NODE_VERSION_MIN.join(".");
  const found = process.versions.node;
  process.stderr.write(`this program needs Node ${needed} or later; this is Node ${found}\n`);
  process.exitCode = 1;
}
