/** What npm's scripts say if Node is too old, a package is missing, or they run outside a clone. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { OWN_CHECKOUT, withFolder } from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";

const SCRIPT = join(OWN_CHECKOUT, "tools/check_setup.cjs");
const node = executableOf("node");

test("check_setup.cjs names the Node, the packages and the clone that are needed", {
  skip: node === null ? absenceOf("node") : false,
}, () =>
  withFolder((folder) => {
    const check = (...args: string[]) => {
      const { status, stderr } = spawnSync(node!, args, { encoding: "utf8" });
      return `${status} ${stderr}`;
    };
    assert.equal(check(SCRIPT, "typescript"), "0 ");
    assert.equal(
      check(SCRIPT, "no-such"),
      "1 no-such is missing: run npm ci, without --omit=dev\n",
    );
    const inPackage = join(folder, "check_setup.cjs");
    copyFileSync(SCRIPT, inPackage);
    const output = check("--no-experimental-strip-types", inPackage);
    assert.match(output, /^1 Node 22\.18 or later is needed, this is v.*: put it .* npm ...\n/);
    assert.match(output, /\nnpm's scripts need a clone: .*\n$/);
    return Promise.resolve();
  }));

test("npm's scripts check the Node that they need", () => {
  const { scripts } = JSON.parse(readFileSync(join(OWN_CHECKOUT, "package.json"), "utf8"));
  for (const [name, command] of Object.entries<string>(scripts)) {
    if (!command.includes(".ts") || command.includes("check_setup.cjs")) continue;
    assert.match(scripts[`pre${name}`] ?? "", /^node tools\/check_setup\.cjs/, name);
  }
});
