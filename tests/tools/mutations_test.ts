import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { mutated, parseMutations, readMutations } from "../../tools/mutations.ts";
import { OWN_CHECKOUT } from "../../tools/support/program.ts";

test("all mutations apply to the current tree and name existing tests", () => {
  const read = (path: string) => readFileSync(join(OWN_CHECKOUT, path), "utf8");
  for (const mutation of readMutations(OWN_CHECKOUT)) {
    mutated(mutation, read);
    for (const path of mutation.tests) {
      assert.ok(existsSync(join(OWN_CHECKOUT, path)), `${mutation.place}: ${path}`);
    }
  }
});

test("parseMutations() names the line that is malformed", () => {
  const FAULTS: [text: string, message: RegExp][] = [
    ["tests/a_test.ts", /^Error: a\.diff:1: expected a title/],
    ["# b\n-x", /^Error: a\.diff:2: expected a title, a test, a file or a line of an edit: -x$/],
    ["\n# b\nsrc/a.ts\n-x", /^Error: a\.diff:2: no test/],
    ["# b\ntests/a_test.ts\nsrc/a.ts\n+x", /^Error: a\.diff:1: lacks an edit/],
  ];
  for (const [text, message] of FAULTS) {
    assert.throws(() => parseMutations("a.diff", text), message);
  }
});
