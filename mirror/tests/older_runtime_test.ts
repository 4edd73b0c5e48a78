/** The runtime that the mirror requires. */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { NEEDED, OLDER } from "../../tests/support/older_runtime.ts";
import { PROGRAMS } from "../../tools/build/programs.ts";
import { stage } from "../../tools/compile/stage.ts";
import { spawnScript, withFolder } from "../../tools/support/program.ts";
import { MIRROR_TIMEOUT_MS, startMirror } from "./support/mirrored.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const IS_EXECUTABLE = process.env.MIRROR_TEST_EXECUTABLE !== undefined;

test("mirror refuses an older runtime before it does anything", {
  skip: IS_EXECUTABLE && "an executable embeds its runtime",
}, () =>
  withFolder(async (folder) => {
    const args = ["standby", "--once", join(folder, "new")];
    const { code, stderr } = await startMirror(args, undefined, MIRROR_TIMEOUT_MS, OLDER).exited;
    assert.equal(code, 1);
    assert.match(stderr, NEEDED);
    assert.equal(stderr.indexOf("this program needs"), 0);
    assert.deepEqual(await readdir(folder), []);
  }));

test("a build of the mirror that embeds an older runtime says at each start what it is for", () =>
  withFolder(async (folder) => {
    stage(ROOT, folder, PROGRAMS.mirror, { revision: "", isTestBuild: true });
    const script = join(folder, "mirror", "cli.js");
    const options = { ...OLDER, permissions: ["--allow-all"], cwd: folder };
    for (const [args, status] of [[["--version"], 0], [["segments"], 2]] as const) {
      const { code, stderr } = await spawnScript(script, [...args], options).exited;
      assert.equal(code, status, stderr);
      const [first, ...more] = stderr.split(/(?<=\n)/);
      assert.match(first!, NEEDED);
      assert.match(first!, /^this build is only for tests: /);
      assert.equal(more.length, status === 0 ? 0 : 1);
    }
    const { stderr } = await spawnScript(script, ["--version"], {
      ...options,
      denoFlags: [],
      nodeFlags: [],
    }).exited;
    assert.equal(stderr, "");
  }));
