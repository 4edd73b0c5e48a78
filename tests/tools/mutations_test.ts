import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { mutated, readMutations } from "../../tools/mutations.ts";
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
