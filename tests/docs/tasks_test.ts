import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");

test("docs/hacking.md lists exactly the tasks in deno.json", () => {
  const listed = [...read("docs/hacking.md").matchAll(/^\| `deno task ([\w:-]+)/gm)];
  const names = listed.map((match) => match[1]!).sort();
  assert.deepEqual(names, Object.keys(JSON.parse(read("deno.json")).tasks).sort());
});
