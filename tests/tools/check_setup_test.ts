/** What npm's scripts say in a clone if Node is too old or a package is missing. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const node = executableOf("node");

test("check_setup.cjs names the Node and the packages that are needed", {
  skip: node === null ? absenceOf("node") : false,
}, () => {
  const check = (...args: string[]) => {
    const { status, stderr } = spawnSync(node!, args, { cwd: ROOT, encoding: "utf8" });
    return `${status} ${stderr}`;
  };
  const script = "tools/check_setup.cjs";
  assert.equal(check(script, "typescript"), "0 ");
  assert.equal(check(script, "no-such"), "1 no-such is missing: run npm ci, without --omit=dev\n");
  assert.match(
    check("--no-experimental-strip-types", script),
    /^1 Node 22\.18 or later is needed, this is v.*: put it .* npx -y -p node@\S+ npm ...\n$/,
  );
});

test("npm's scripts check the Node that they need", () => {
  const { scripts } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  for (const [name, command] of Object.entries<string>(scripts)) {
    if (!command.includes(".ts") || command.includes("check_setup.cjs")) continue;
    assert.match(scripts[`pre${name}`] ?? "", /^node tools\/check_setup\.cjs/, name);
  }
});
