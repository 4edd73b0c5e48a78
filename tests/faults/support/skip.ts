/** Leaving out a test that this machine cannot run, so that nobody takes it for one that passed. */
import process from "node:process";
import type { TestContext } from "node:test";

/**
 * Skips the test, and says so on standard error too: reporters show a skipped test like any other.
 */
export function skipLoudly(context: TestContext, reason: string): void {
  process.stderr.write(`NOT RUN: ${context.name}: ${reason}\n`);
  context.skip(reason);
}
