/** Entry point for the mirror. For its commands, see `USAGE` in arguments.ts. */
import process from "node:process";
import { EXIT_OK, operationalError } from "../src/commands/exit.ts";
import { reportFailure } from "../src/commands/run.ts";
import { catchSignals } from "../src/commands/signals.ts";
import { TERMINAL } from "../src/commands/terminal.ts";
import { IS_TEST_BUILD } from "../src/revision.ts";
import { endProcess } from "../src/runtime/end_process.ts";
import { runtimeFault } from "../src/runtime/runtime_version.ts";
import { FULL_VERSION } from "../src/version.ts";
import { type Invocation, parseArguments, USAGE } from "./arguments.ts";

async function run(invocation: Invocation): Promise<void> {
  const { print, report } = TERMINAL;
  switch (invocation.command) {
    case "help":
      return print(USAGE);
    case "version":
      return print(`${FULL_VERSION}\n`);
    case "push": {
      const { push } = await import("./push/push.ts");
      return await push({ ...invocation, stop: catchSignals(report), print, report });
    }
    case "segments": {
      const { uploadSegments } = await import("./segments/upload.ts");
      return await uploadSegments(invocation.dir, invocation.to, report);
    }
    default: {
      const { restore } = await import("./restore/restore.ts");
      const terminal = { ...TERMINAL, stop: catchSignals(report) };
      return await restore({ ...invocation, terminal });
    }
  }
}

async function main(): Promise<number> {
  try {
    const fault = runtimeFault();
    if (fault !== null && !IS_TEST_BUILD) throw operationalError(fault);
    if (fault !== null) TERMINAL.report(`this build is only for tests: ${fault}`);
    await run(parseArguments(process.argv.slice(2)));
    return EXIT_OK;
  } catch (error) {
    return reportFailure(error, TERMINAL);
  }
}

// After an uncaught error, the program's state is unknown, so report the error and exit.
for (const event of ["uncaughtException", "unhandledRejection"]) {
  process.on(event, (error) => endProcess(reportFailure(error, TERMINAL)));
}

endProcess(await main());
