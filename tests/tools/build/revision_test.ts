/** The revision of a source tree, tested in temporary repositories. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { revisionModule, revisionOf } from "../../../tools/build/revision.ts";
import { withFolder } from "../../../tools/support/program.ts";

const skip = spawnSync("git", ["--version"]).status === 0 ? false : "git not found";

function git(folder: string, ...args: string[]): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
  return execFileSync("git", ["-C", folder, ...identity, ...args], { encoding: "utf8" }).trim();
}

/** Creates a repository with one commit. @returns its short hash. */
async function makeRepository(folder: string): Promise<string> {
  git(folder, "init", "--quiet");
  await writeFile(join(folder, "a"), "1");
  git(folder, "add", "a");
  git(folder, "commit", "--quiet", "--message", "a");
  return git(folder, "rev-parse", "--short", "HEAD");
}

test(
  "revisionOf() returns the short revision, with -dirty if a tracked file has changed",
  { skip },
  () =>
    withFolder(async (folder) => {
      const revision = await makeRepository(folder);
      assert.equal(revisionOf(folder), revision);
      await writeFile(join(folder, "unknown"), "");
      assert.equal(revisionOf(folder), revision);
      await writeFile(join(folder, "a"), "2");
      assert.equal(revisionOf(folder), `${revision}-dirty`);
    }),
);

test("revisionModule() replaces the module in the source tree", async () => {
  const isTestBuild = true;
  const { path, text } = revisionModule("abc-dirty", isTestBuild);
  const ofTree = await import(
    new URL(`../../../${path.replace(/js$/, "ts")}`, import.meta.url).href
  );
  assert.deepEqual({ ...ofTree }, { REVISION: "", IS_TEST_BUILD: false });
  assert.equal(text, 'export const REVISION = "abc-dirty";\nexport const IS_TEST_BUILD = true;\n');
});
