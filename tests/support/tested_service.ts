/**
 * Client-level tests, which can also run against a compiled executable. In that case, tests that
 * inject disk faults or set other limits are skipped, because they need the service in their own
 * process. The tests in a file run one after another, so there is only one current test.
 */
import { test as nodeTest, type TestContext } from "node:test";
import { TESTED_EXECUTABLE } from "../../tools/support/runtimes.ts";

interface TestOptions {
  skip?: string | boolean;
}
type Run = (context: TestContext) => void | Promise<void>;

let current: TestContext | undefined;

/** The part of `test()` from `node:test` that these tests use. */
export function test(name: string, optionsOrRun: TestOptions | Run, run?: Run): void {
  const [options, use] = typeof optionsOrRun === "function"
    ? [{}, optionsOrRun]
    : [optionsOrRun, run!];
  nodeTest(name, options, (context) => {
    current = context;
    return use(context);
  });
}

/** Skips the current test if it runs against an executable. @returns whether it did. */
export function isSkippedForExecutable(): boolean {
  if (TESTED_EXECUTABLE === undefined || current === undefined) return false;
  current.skip("needs the service in the test process");
  return true;
}
