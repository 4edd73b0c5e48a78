/**
 * Runs a command and sends signals to this process as soon as the command has started. Arguments:
 * the signals joined by commas, the command and the deployment directory.
 */
import { join } from "node:path";
import process from "node:process";
import { loadConfig } from "../../src/commands/config.ts";
import { EXIT_OK } from "../../src/commands/exit.ts";
import { init } from "../../src/commands/init.ts";
import { reportFailure } from "../../src/commands/run.ts";
import { seal } from "../../src/commands/seal.ts";
import { catchSignals } from "../../src/commands/signals.ts";
import { TERMINAL } from "../../src/commands/terminal.ts";
import { verify } from "../../src/commands/verify.ts";
import { endProcess } from "../../src/runtime/end_process.ts";

const [signals, command, dir] = process.argv.slice(2) as [string, string, string];

const terminal = { ...TERMINAL, stop: catchSignals(TERMINAL.report) };

async function prepare(): Promise<() => Promise<unknown>> {
  if (command === "init") return () => init(dir);
  const config = await loadConfig(join(dir, "service.toml"));
  return command === "seal"
    ? () => seal(config, terminal)
    : () => verify(config, { chain: "" }, terminal);
}

const start = await prepare();
const ended = start();
for (const signal of signals.split(",")) process.kill(process.pid, signal);
try {
  await ended;
  endProcess(EXIT_OK);
} catch (error) {
  endProcess(reportFailure(error, TERMINAL));
}
