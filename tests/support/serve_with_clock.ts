/** `serve_with_clock.ts CONFIG FILE`: `serve`, whose clock is ahead by the milliseconds in FILE. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { loadConfig } from "../../src/commands/config.ts";
import { EXIT_OK } from "../../src/commands/exit.ts";
import { serve } from "../../src/commands/serve.ts";
import { catchSignals } from "../../src/commands/signals.ts";
import { endProcess } from "../../src/runtime/end_process.ts";

const [configPath, aheadPath] = process.argv.slice(2);
const now = Date.now;
Date.now = () => now() + Number(readFileSync(aheadPath!, "utf8"));
const report = (line: string) => void process.stderr.write(`${line}\n`);
await serve(await loadConfig(configPath!), { report, stop: catchSignals(report) });
endProcess(EXIT_OK);
