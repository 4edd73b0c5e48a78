/** Command-line entry point. Checks the runtime's version before loading the program. */
import process from "node:process";
import { IS_TEST_BUILD } from "./src/revision.ts";

/** Oldest runtimes. Deno 2.6 is known to corrupt events (docs/releasing.md). */
const OLDEST = { Deno: [2, 9], Node: [22, 18] } as const;

/** Runs the program and ends the process. @param warning reported when a service starts. */
async function main(warning: string | null): Promise<void> {
  const { reportFailure, run } = await import("./src/commands/run.ts");
  const { TERMINAL } = await import("./src/commands/terminal.ts");
  const { endProcess } = await import("./src/runtime/end_process.ts");

  // After an uncaught error, the program's state is unknown, so report the error and exit.
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (error) => endProcess(reportFailure(error, TERMINAL)));
  }

  endProcess(await run(process.argv.slice(2), TERMINAL, warning));
}

const name = process.versions.deno === undefined ? "Node" : "Deno";
const found = process.versions.deno ?? process.versions.node;
const [major = 0, minor = 0] = found.split(".").map(Number);
const [oldestMajor, oldestMinor] = OLDEST[name];
const needed = `this program needs ${name} ${oldestMajor}.${oldestMinor} or later`;
if (major > oldestMajor || major === oldestMajor && minor >= oldestMinor) {
  await main(null);
} else if (IS_TEST_BUILD) {
  await main(`only for tests: ${needed}; this build embeds ${name} ${found}`);
} else {
  process.stderr.write(`${needed}; this is ${name} ${found}\n`);
  process.exitCode = 1;
}
