/**
 * Runs `serve` (`serve.ts CONFIG ROTATE_BYTES`), but after loading its modules, waits for a line on
 * standard input before it opens or creates the deployment.
 */
import { existsSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { once } from "node:events";
import process from "node:process";
import { loadConfig } from "../../../src/commands/config.ts";
import { init } from "../../../src/commands/init.ts";
import { reportFailure } from "../../../src/commands/run.ts";
import { serve } from "../../../src/commands/serve.ts";
import { TERMINAL } from "../../../src/commands/terminal.ts";

const [config, rotateBytes] = process.argv.slice(2) as [string, string];
const { report } = TERMINAL;
try {
  writeFileSync("/tmp/serve.loaded", "");
  await once(process.stdin, "data");
  if (!existsSync(config)) await init(dirname(config), report);
  const onReady = () => report("powercut: ready");
  await serve(await loadConfig(config), { report, onReady, rotateBytes: Number(rotateBytes) });
} catch (error) {
  process.exitCode = reportFailure(error, TERMINAL);
}
