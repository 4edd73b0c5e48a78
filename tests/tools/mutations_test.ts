import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { MUTATIONS } from "../../tools/mutations.ts";
import { edited } from "../../tools/support/mutation.ts";

const ROOT = new URL("../../", import.meta.url);

test("MUTATIONS apply to the current tree and name existing tests", () => {
  for (const { name, edits, tests } of MUTATIONS) {
    const texts = new Map<string, string>();
    for (const edit of edits) {
      const text = texts.get(edit.file) ?? readFileSync(new URL(edit.file, ROOT), "utf8");
      texts.set(edit.file, edited(text, edit));
    }
    assert.ok(tests.length > 0, name);
    for (const path of tests) assert.ok(existsSync(new URL(path, ROOT)), `${name}: ${path}`);
  }
});
