import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { spawnScript } from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";

const YOUNG_HEAP = fileURLToPath(new URL("../support/young_heap.ts", import.meta.url));
const skip = executableOf("node") === null ? absenceOf("node") : false;

test("boundHeap() lets a small young generation grow to 8 MiB", { skip }, async () => {
  const { code, stdout, stderr } = await spawnScript(YOUNG_HEAP, [], { runtime: "node" }).exited;
  assert.equal(code, 0, stderr);
  const sizes: number[] = JSON.parse(stdout);
  assert.ok(sizes[0]! < 8, "it starts as small as in an idle process");
  assert.ok(sizes.at(-1)! >= 8 && sizes.at(-1)! <= 16, stdout);
});
