/** `event.ts` is for browsers, so its types must not need those of a runtime. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";

const node = executableOf("node");

test("event.ts type-checks with the types of a browser alone", {
  skip: node === null ? absenceOf("node") : false,
}, () => {
  const { resolve } = createRequire(import.meta.url);
  const compiler = join(dirname(resolve("typescript/package.json")), "bin", "tsc");
  const entry = fileURLToPath(new URL("../../event.ts", import.meta.url));
  const options = ["--noEmit", "--strict", "--lib", "es2024,dom", "--types", ""];
  const modules = ["--module", "preserve", "--allowImportingTsExtensions"];
  const args = [compiler, "--ignoreConfig", ...options, ...modules, entry];
  const { status, stdout } = spawnSync(node!, args, { encoding: "utf8" });
  assert.deepEqual([stdout, status], ["", 0]);
});
