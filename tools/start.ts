/**
 * `task start`: creates a deployment in ./demo on the first run, and serves it until Ctrl-C. Once
 * the service is ready, prints commands to try.
 */
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { type Config, loadConfig } from "../src/commands/config.ts";
import { EXIT_OK, operationalError } from "../src/commands/exit.ts";
import { init } from "../src/commands/init.ts";
import { reportFailure } from "../src/commands/run.ts";
import { serve } from "../src/commands/serve.ts";
import { catchSignals } from "../src/commands/signals.ts";
import { TERMINAL } from "../src/commands/terminal.ts";
import { endProcess } from "../src/runtime/end_process.ts";
import { runtimeFault } from "../src/runtime/runtime_version.ts";

const DIR = "demo";
const { report } = TERMINAL;

async function start(): Promise<void> {
  const fault = runtimeFault();
  if (fault !== null) throw operationalError(fault);
  const configPath = join(DIR, "service.toml");
  // An edited configuration is accepted here. Only `init` requires the original one.
  if (!existsSync(configPath)) report(`${await init(DIR)} ${DIR}`);
  const config = await loadConfig(configPath);
  await serve(config, { report, stop: catchSignals(report), onReady: () => report(hints(config)) });
}

function hints(config: Config): string {
  const batch = {
    source: "shop",
    batch_id: "batch-1",
    events: [
      { stream: "orders", record_key: "1001", kind: "upserted", payload: { total: 42.5 } },
      { stream: "orders", record_key: "1001", kind: "deleted", payload: null },
    ],
  };
  const authorization = config.token === "" ? "" : ' -H "Authorization: Bearer $TOKEN"';
  const curl = `curl --unix-socket ${relative(".", config.socketPath)}${authorization}`;
  const url = "http://localhost/v1/events";
  return `Ready. Try these commands in another terminal, as often as you like:
  ${curl} -H 'Content-Type: application/json' -d '${JSON.stringify(batch)}' ${url}
  ${curl} ${url}
Press Ctrl-C to stop the service, or simulate a crash with: kill -9 ${process.pid}`;
}

try {
  await start();
  endProcess(EXIT_OK);
} catch (error) {
  endProcess(reportFailure(error, TERMINAL));
}
