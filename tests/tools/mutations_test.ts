import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { edited } from "../../tools/mutation.ts";
import { MUTATIONS } from "../../tools/mutations.ts";

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

test("edited() rejects a string that does not occur exactly once", () => {
  const edit = { file: "f", find: "a", replace: "b" };
  assert.equal(edited("xa", edit), "xb");
  assert.throws(() => edited("x", edit), /f does not contain this text exactly once/);
  assert.throws(() => edited("aa", edit), /f does not contain this text exactly once/);
});
