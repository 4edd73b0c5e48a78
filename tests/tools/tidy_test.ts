import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { findUntidy } from "../../tools/tidy.ts";

test("findUntidy() finds nothing in this tree", () => {
  assert.deepEqual(findUntidy(fileURLToPath(new URL("../..", import.meta.url))), []);
});
