/**
 * Tests of what a client sees, which also run against a compiled executable. Those that turn out to
 * need the service in their own process, because they make its disk fail or set other limits, are
 * skipped then. The tests of a file run one after the other, so one of them is the current one.
 */
import { test as nodeTest, type TestContext } from "node:test";
import { TESTED_EXECUTABLE } from "../../tools/support/runtimes.ts";

interface TestOptions {
  skip?: string | boolean;
}
type Run = (context: TestContext) => void | Promise<void>;

let current: TestContext | undefined;

/** `test()` of `node:test`, as far as these tests use it. */
export function test(name: string, optionsOrRun: TestOptions | Run, run?: Run): void {
  const [options, use] = typeof optionsOrRun === "function"
    ? [{}, optionsOrRun]
    : [optionsOrRun, run!];
  nodeTest(name, options, (context) => {
    current = context;
    return use(context);
  });
}

/** Skips the current test when it is an executable that is tested. @returns whether it is. */
export function isSkippedForExecutable(): boolean {
  if (TESTED_EXECUTABLE === undefined || current === undefined) return false;
  current.skip("needs the service in the test's own process");
  return true;
}
