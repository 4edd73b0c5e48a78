/** Visibly skips tests that cannot run on this machine. */
import process from "node:process";
import type { TestContext } from "node:test";

/** Skips a test and says so on standard error, because reporters barely show skipped tests. */
export function skipLoudly(context: TestContext, reason: string): void {
  process.stderr.write(`SKIPPED: ${context.name}: ${reason}\n`);
  context.skip(reason);
}
