/**
 * `serve` with a different TAIL_ROTATE_BYTES, so that tests and benchmarks can make tails rotate
 * and seal early, or never: `serve_rotating.ts CONFIG BYTES`.
 */
import process from "node:process";
import { loadConfig } from "../src/commands/config.ts";
import { EXIT_OK } from "../src/commands/exit.ts";
import { serve } from "../src/commands/serve.ts";
import { endProcess } from "../src/runtime/end_process.ts";

const [configPath, bytes] = process.argv.slice(2);
const report = (line: string) => void process.stderr.write(`${line}\n`);
await serve(await loadConfig(configPath!), { report, rotateBytes: Number(bytes) });
endProcess(EXIT_OK);
