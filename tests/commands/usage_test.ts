/** The output of `--man`, and of `--help` for the program and for each command. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { parseArguments } from "../../src/commands/arguments.ts";
import { COMMAND_NAMES, type CommandName, OPTION_NAMES } from "../../src/commands/command_table.ts";
import { usageText } from "../../src/commands/usage.ts";
import { runCli } from "../../tools/support/program.ts";

const WIDTH = 72;

test("usageText() of the program names commands, options and statuses, and explains each key", () => {
  const text = usageText(null);
  for (const name of COMMAND_NAMES) assert.match(text, new RegExp(`^  ${name} `, "m"));
  for (const name of OPTION_NAMES) assert.ok(text.includes(`--${name}`), name);
  for (const key of ["dir", "mode", "anchor", "socket", "token", "default_limit", "max_limit"]) {
    assert.match(text, new RegExp(`^  # .*\\.\n  ${key} = `, "m"));
  }
  for (const status of [0, 1, 2, 3, 4]) assert.match(text, new RegExp(`^  ${status}  \\w`, "m"));
});

test("usageText() of verify shows its synopsis, options and an example", () => {
  const text = usageText("verify");
  assert.ok(text.includes("Usage: service verify [--config <PATH>] [--chain]\n"));
  assert.match(text, /^ +-h, --help +Print this help/m);
  assert.match(text, /^ +service verify --config .* --chain$/m);
});

test("usageText() of a command lists the exit statuses that it can have", () => {
  const statusesOf = (name: CommandName) => usageText(name).match(/^ {2}\d(?= {2})/gm)!.map(Number);
  assert.deepEqual(statusesOf("append"), [0, 1, 2]);
  assert.deepEqual(statusesOf("serve"), [0, 1, 2, 4]);
  assert.deepEqual(statusesOf("verify"), [0, 1, 2, 3, 4]);
});

for (const name of COMMAND_NAMES) {
  test(`the example of ${name} is a valid command`, () => {
    const [, line] = usageText(name).match(/^ {2}service (.*)$/m)!;
    const invocation = parseArguments(line!.split(" "));
    assert.equal("command" in invocation && invocation.command, name);
  });
}

for (const name of [null, ...COMMAND_NAMES]) {
  test(`usageText() of ${name} is at most ${WIDTH} columns wide`, () => {
    const text = usageText(name);
    for (const line of text.split("\n")) {
      assert.ok(line.length <= WIDTH, line);
    }
    assert.match(text, /[^\n]\n$/);
    assert.doesNotMatch(text, /undefined|\[object| $/m);
  });
}

test("groff formats the --man output with the help of each command, without warnings", async (context) => {
  const { code, stdout } = await runCli(["--man"]);
  assert.equal(code, 0);
  const options = { input: stdout, encoding: "utf8" } as const;
  const formatted = spawnSync("groff", ["-man", "-Tascii", "-ww", "-P-cbou"], options);
  if (formatted.error !== undefined) return context.skip("groff is not installed");
  assert.equal(formatted.stderr, "");
  assert.match(formatted.stdout, /^SERVICE\(1\) +User Commands +SERVICE\(1\)$/m);
  const shown = formatted.stdout.replaceAll(/^ {7}/gm, "");
  for (const name of [null, ...COMMAND_NAMES]) {
    assert.ok(shown.includes(usageText(name)), `${name}\n${shown}`);
  }
});
