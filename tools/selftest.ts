/**
 * `deno task selftest DIR`, or `node tools/selftest.ts DIR`: checks in half a minute whether DIR
 * can be trusted with a log, and prints one line to standard output. Exit status 0: yes. 1: no or
 * uncertain. 2: invalid arguments. DIR is left unchanged.
 */
import { stat } from "node:fs/promises";
import process from "node:process";
import { endProcess } from "../src/runtime/end_process.ts";
import { selfTest, SELFTEST_DECK } from "./selftest/self_test.ts";

const EXIT_DISTRUST = 1;
const EXIT_USAGE = 2;
const SEED_MAX = 2 ** 31;

async function test(dir: string): Promise<void> {
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => stopped.abort(new Error(`stopped by ${signal}`)));
  }
  try {
    const { isTrusted, reason } = await selfTest({
      dir,
      seed: Math.floor(Math.random() * SEED_MAX),
      deck: SELFTEST_DECK,
      report: (line) => void process.stderr.write(`${line}\n`),
      signal: stopped.signal,
    });
    const verdict = isTrusted ? "can be trusted" : "cannot be trusted";
    process.stdout.write(`${dir} ${verdict} with a log: ${reason}\n`);
    if (!isTrusted) process.exitCode = EXIT_DISTRUST;
  } catch (error) {
    if (!stopped.signal.aborted) throw error;
    process.stderr.write(`${(error as Error).message}; ${dir} was not fully tested\n`);
    process.exitCode = EXIT_DISTRUST;
  }
}

const [dir, ...others] = process.argv.slice(2);
const isFolder = dir !== undefined && others.length === 0 &&
  ((await stat(dir).catch(() => null))?.isDirectory() ?? false);
if (isFolder) {
  await test(dir);
} else {
  process.stderr.write("usage: selftest DIR, an existing directory on the file system to test\n");
  process.exitCode = EXIT_USAGE;
}
// End explicitly, because idle keep-alive connections would keep the process alive.
endProcess(Number(process.exitCode ?? 0));
