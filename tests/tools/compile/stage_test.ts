/** The files that the executable contains. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scriptOf } from "../../../tools/build/javascript.ts";
import { stage, workersOf } from "../../../tools/compile/stage.ts";
import { withFolder } from "../../../tools/support/program.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PACKAGES = Object.keys(
  JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).dependencies,
);

test("workersOf() finds every worker module", () => {
  const started = globSync("src/**/*.ts", { cwd: ROOT }).flatMap((path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    return [...text.matchAll(/new URL\("\.\/([^"]+)", import\.meta\.url\)/g)]
      .map((match) => join(path, "..", match[1]!));
  });
  assert.ok(started.length > 0);
  assert.deepEqual(workersOf(ROOT), [...new Set(started.map(scriptOf))].sort());
});

test("stage() copies the program, its revision and its packages' JavaScript", () =>
  withFolder((folder) => {
    stage(ROOT, folder, { revision: "abc", isTestBuild: false });
    const files = globSync("**/*", { cwd: folder }).filter((path) => /\.\w+$/.test(path));
    const own = files.filter((path) => !path.startsWith("vendor/"));
    const scripts = globSync("src/**/*.ts", { cwd: ROOT }).map(scriptOf);
    assert.deepEqual(own.sort(), ["cli.js", "deno.json", ...scripts].sort());
    assert.match(readFileSync(join(folder, "src/revision.js"), "utf8"), /"abc"/);
    for (const path of files) assert.ok(own.includes(path) || path.endsWith(".js"), path);
    const { imports } = JSON.parse(readFileSync(join(folder, "deno.json"), "utf8"));
    for (const name of PACKAGES) assert.ok(existsSync(join(folder, imports[name])), name);
    return Promise.resolve();
  }));
