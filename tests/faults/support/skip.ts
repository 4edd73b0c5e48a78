/** Skips tests that this machine cannot run, visibly. */
import process from "node:process";
import type { TestContext } from "node:test";

/** Skips the test and says so on standard error: reporters barely show a skipped test. */
export function skipLoudly(context: TestContext, reason: string): void {
  process.stderr.write(`SKIPPED: ${context.name}: ${reason}\n`);
  context.skip(reason);
}
