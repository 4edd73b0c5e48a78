/** The files that the executable contains. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { scriptOf } from "../../../tools/build/javascript.ts";
import { PROGRAMS } from "../../../tools/build/programs.ts";
import { stage, workersOf } from "../../../tools/compile/stage.ts";
import { withFolder } from "../../../tools/support/program.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

test("workersOf() finds every worker module", () => {
  const paths = globSync(["src/**/*.ts", "mirror/*/*.ts"], { cwd: ROOT });
  const started = paths.flatMap((path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    return [...text.matchAll(/new URL\("\.\/([^"]+)", import\.meta\.url\)/g)]
      .map((match) => join(path, "..", match[1]!));
  });
  assert.ok(started.length > 0);
  assert.deepEqual(workersOf(ROOT, PROGRAMS.mirror), [...new Set(started.map(scriptOf))].sort());
});

for (const [name, program] of Object.entries(PROGRAMS)) {
  test(`stage() copies ${name}, its revision and its packages' scripts`, () =>
    withFolder((folder) => {
      stage(ROOT, folder, program, { revision: "abc", isTestBuild: false });
      assert.match(readFileSync(join(folder, "src/revision.js"), "utf8"), /"abc"/);
      const files = globSync("**/*", { cwd: folder }).filter((path) => /\.\w+$/.test(path));
      const own = files.filter((path) => !path.startsWith("node_modules/"));
      assert.ok(own.includes(scriptOf(program.entry)));
      assert.deepEqual(own.filter((path) => /test|bench|\.ts$/.test(path)), []);
      for (const path of files) assert.match(path, /\.[cm]?js$|\.json$/);
      for (const path of program.packages) {
        const { dependencies } = JSON.parse(readFileSync(join(ROOT, path), "utf8"));
        for (const dependency of Object.keys(dependencies)) {
          assert.ok(existsSync(join(folder, "node_modules", dependency, "package.json")));
        }
      }
      return Promise.resolve();
    }));
}
