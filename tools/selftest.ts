/**
 * `deno task selftest DIR`, or `node tools/selftest.ts DIR`: checks in half a minute whether DIR
 * can be trusted with a log, and prints one line to standard output. Exit status 0: yes. 1: no or
 * uncertain. 2: invalid arguments. DIR is left unchanged.
 */
import { stat } from "node:fs/promises";
import process from "node:process";
import { selfTest, SELFTEST_DECK } from "./selftest/self_test.ts";
import { SEED } from "./support/random.ts";
import { report, runTool, stopSignal } from "./support/run_tool.ts";

const EXIT_TRUST = 0;
const EXIT_DISTRUST = 1;

async function readFolder([dir = "", ...others]: string[]): Promise<string> {
  const isFolder = (await stat(dir).catch(() => null))?.isDirectory() ?? false;
  if (isFolder && others.length === 0) return dir;
  throw new Error("usage: selftest DIR, an existing directory on the file system to test");
}

async function test(dir: string): Promise<number> {
  const signal = stopSignal();
  try {
    const options = { dir, seed: SEED, deck: SELFTEST_DECK, report, signal };
    const { isTrusted, reason } = await selfTest(options);
    const verdict = isTrusted ? "can be trusted" : "cannot be trusted";
    process.stdout.write(`${dir} ${verdict} with a log: ${reason}\n`);
    return isTrusted ? EXIT_TRUST : EXIT_DISTRUST;
  } catch (error) {
    if (!signal.aborted) throw error;
    report(`${(error as Error).message}; ${dir} was not fully tested`);
    return EXIT_DISTRUST;
  }
}

await runTool(readFolder, test);
