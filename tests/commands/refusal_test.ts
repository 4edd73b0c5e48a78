/** Configurations that `serve`, `seal` and `verify` refuse before they touch a log. */
import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { CONFIG_TEMPLATE } from "../../src/commands/config_template.ts";
import { init } from "../../src/commands/init.ts";
import { runCli, withFolder } from "../../tools/support/program.ts";

/** Runs a command with a changed configuration; the log must stay empty. */
async function runOn(from: string, to: string, command: string[]) {
  return await withFolder(async (dir) => {
    await init(dir, () => {});
    const config = join(dir, "service.toml");
    const text = (await readFile(config, "utf8")).replace(from, to);
    assert.ok(text.includes(to));
    await writeFile(config, text);
    const exit = await runCli([...command, "--config", config]);
    assert.equal(exit.stdout, "");
    assert.deepEqual(await readdir(join(dir, "data")), ["log"]);
    assert.deepEqual(await readdir(join(dir, "data", "log")), []);
    return exit;
  });
}

const UNSUPPORTED: [from: string, to: string][] = [
  ['mode = "open"', 'mode = "governed"'],
  ['mode = "open"', 'mode = "locked"'],
  ['anchor = "none"', 'anchor = "signed"'],
  ['anchor = "none"', 'anchor = "mirrored"'],
  ['anchor = "none"', 'anchor = "witnessed"'],
];

for (const command of [["serve"], ["seal"], ["verify", "--chain"]]) {
  test(`${command.join(" ")} exits 4 for a stronger mode or anchor`, async () => {
    for (const [from, to] of command[0] === "serve" ? UNSUPPORTED : UNSUPPORTED.slice(1, 3)) {
      const { code, stderr } = await runOn(from, to, command);
      assert.equal(code, 4, stderr);
      assert.match(stderr, /service\.toml: \[(security|integrity)\] \w+ \w+ is not supported/);
    }
  });
}

const UNUSABLE: [from: string, to: string, reason: RegExp][] = [
  ["max_limit = 100000", "max_limit = 0", /\[replay\] max_limit must be at least 1, got 0/],
  ["[replay]", "[query]\n[replay]", /^The \[query\] section is no longer supported\./],
  ['mode = "open"', 'mode = "closed"', /\[security\] mode/],
  ["[replay]", "[relay]", /unknown section or key relay/],
  ['token = ""', 'token = "s3cret', /line \d+/],
];

for (const command of [["serve"], ["seal"], ["verify"]]) {
  test(`${command.join(" ")} exits 2 for an unusable configuration, in one line`, async () => {
    for (const [from, to, reason] of command[0] === "serve" ? UNUSABLE : UNUSABLE.slice(0, 1)) {
      const { code, stderr } = await runOn(from, to, command);
      assert.equal(code, 2, stderr);
      assert.match(stderr, reason);
      assert.match(stderr, /^[^\n]+\n$/);
      assert.ok(!stderr.includes("s3cret"));
    }
  });
}

test("serve exits 1 without a log folder, and creates none", () =>
  withFolder(async (dir) => {
    await writeFile(join(dir, "service.toml"), CONFIG_TEMPLATE);
    const { code, stdout, stderr } = await runCli(["serve"], { cwd: dir });
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /run init/);
    assert.deepEqual(await readdir(dir), ["service.toml"]);
  }));
