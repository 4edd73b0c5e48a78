/** The files that the executable contains. The mirror's tests run a staged program. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { scriptOf } from "../../../tools/build/javascript.ts";
import { PROGRAMS } from "../../../tools/build/programs.ts";
import { stage, workersOf } from "../../../tools/compile/stage.ts";
import { OWN_CHECKOUT, withFolder } from "../../../tools/support/program.ts";

test("workersOf() finds every worker module", () => {
  const started = globSync(["src/**/*.ts", "mirror/*/*.ts"], { cwd: OWN_CHECKOUT }).flatMap((
    path,
  ) =>
    [...readFileSync(join(OWN_CHECKOUT, path), "utf8").matchAll(/new URL\("\.\/([^"]+)", import/g)]
      .map(([, worker]) => scriptOf(join(dirname(path), worker!)))
  );
  assert.ok(started.length > 0);
  assert.deepEqual(workersOf(OWN_CHECKOUT, PROGRAMS.mirror), [...new Set(started)].sort());
});

test("stage() copies a program, its revision and its packages' scripts", () =>
  withFolder((folder) => {
    stage(OWN_CHECKOUT, folder, PROGRAMS.service, { revision: "abc", isTestBuild: false });
    assert.match(readFileSync(join(folder, "src/revision.js"), "utf8"), /"abc"/);
    const files = globSync("**/*.*", { cwd: folder });
    for (const path of ["cli.js", "node_modules/hyparquet/package.json"]) {
      assert.ok(files.includes(path), path);
    }
    for (const path of files) assert.match(path, /\.[cm]?js$|\.json$/);
    return Promise.resolve();
  }));
