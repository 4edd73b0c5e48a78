/**
 * `serve` with a different TAIL_ROTATE_BYTES, so that tests and benchmarks can make tails rotate
 * and seal early, or never: `serve_rotating.ts CONFIG BYTES`.
 */
import process from "node:process";
import { loadConfig } from "../src/commands/config.ts";
import { EXIT_OK } from "../src/commands/exit.ts";
import { serve } from "../src/commands/serve.ts";
import { catchSignals } from "../src/commands/signals.ts";
import { endProcess } from "../src/runtime/end_process.ts";

const [configPath, bytes] = process.argv.slice(2);
const report = (line: string) => void process.stderr.write(`${line}\n`);
const options = { report, stop: catchSignals(report), rotateBytes: Number(bytes) };
await serve(await loadConfig(configPath!), options);
endProcess(EXIT_OK);
