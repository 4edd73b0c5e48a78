import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { requireVersion } from "../../../tools/compile/trial_run.ts";
import { withFolder } from "../../../tools/support/program.ts";

const PROGRAMS: [script: string, failure: RegExp | null][] = [
  ["echo 0.2.0+abc", null],
  ["echo 0.1.0", /does not print 0\.2\.0\+abc: it printed "0\.1\.0\\n"$/],
  ["echo no standalone section >&2; exit 1", /: no standalone section$/],
  ["exit 7", /: exit status 7$/],
];

for (const [script, failure] of PROGRAMS) {
  test(`requireVersion() ${failure === null ? "accepts" : "refuses"} ${script}`, () =>
    withFolder(async (folder) => {
      const path = join(folder, "program");
      await writeFile(path, `#!/bin/sh\n[ "$1" = --version ] || exit 9\n${script}\n`);
      await chmod(path, 0o700);
      const run = () => requireVersion(path, "0.2.0+abc");
      if (failure === null) run();
      else assert.throws(run, { message: failure });
    }));
}
