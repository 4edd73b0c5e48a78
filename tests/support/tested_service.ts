/**
 * Client-level tests, which also run against a compiled executable. Tests that turn out to need the
 * service in their own process, to inject disk faults or other limits, are then skipped. The tests
 * of a file run sequentially, so one of them is the current one.
 */
import { test as nodeTest, type TestContext } from "node:test";
import { TESTED_EXECUTABLE } from "../../tools/support/runtimes.ts";

interface TestOptions {
  skip?: string | boolean;
}
type Run = (context: TestContext) => void | Promise<void>;

let current: TestContext | undefined;

/** The part of `test()` of `node:test` that these tests use. */
export function test(name: string, optionsOrRun: TestOptions | Run, run?: Run): void {
  const [options, use] = typeof optionsOrRun === "function"
    ? [{}, optionsOrRun]
    : [optionsOrRun, run!];
  nodeTest(name, options, (context) => {
    current = context;
    return use(context);
  });
}

/** Skips the current test when testing an executable. @returns whether it did. */
export function isSkippedForExecutable(): boolean {
  if (TESTED_EXECUTABLE === undefined || current === undefined) return false;
  current.skip("needs the service in the test process");
  return true;
}
