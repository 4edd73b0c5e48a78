/**
 * Runs `serve` (`serve.ts CONFIG ROTATE_BYTES`), but after loading its modules, waits for a line on
 * standard input before it opens or creates the deployment. TCP port 7000 forwards to the socket.
 */
import { existsSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname } from "node:path";
import { once } from "node:events";
import process from "node:process";
import { pipeline } from "node:stream";
import { loadConfig } from "../../../src/commands/config.ts";
import { EXIT_OK } from "../../../src/commands/exit.ts";
import { init } from "../../../src/commands/init.ts";
import { reportFailure } from "../../../src/commands/run.ts";
import { serve } from "../../../src/commands/serve.ts";
import { catchSignals } from "../../../src/commands/signals.ts";
import { TERMINAL } from "../../../src/commands/terminal.ts";
import { endProcess } from "../../../src/runtime/end_process.ts";

const [configPath, rotateBytes] = process.argv.slice(2) as [string, string];
const { report } = TERMINAL;
try {
  writeFileSync("/tmp/loaded", "");
  await once(process.stdin, "data");
  if (!existsSync(configPath)) await init(dirname(configPath));
  const config = await loadConfig(configPath);
  // A broken connection closes both sides, and the client on the host retries.
  const gateway = createServer((client) =>
    pipeline(client, connect(config.socketPath), client, () => {})
  );
  gateway.listen(7000, "0.0.0.0");
  const onReady = () => report("powercut: ready");
  const stop = catchSignals(report);
  await serve(config, { report, stop, onReady, rotateBytes: Number(rotateBytes) });
  endProcess(EXIT_OK);
} catch (error) {
  endProcess(reportFailure(error, TERMINAL));
}
