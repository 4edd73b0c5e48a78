/** The output of `--help` of the program and of each command. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseArguments } from "../../src/commands/arguments.ts";
import {
  COMMAND_NAMES,
  COMMANDS,
  OPTION_NAMES,
  optionForm,
} from "../../src/commands/command_table.ts";
import { commandForm, usageText } from "../../src/commands/usage.ts";

const WIDTH = 80;

test("usageText() of the program names every command, every global option and every status", () => {
  const text = usageText(null);
  for (const name of COMMAND_NAMES) assert.match(text, new RegExp(`^  ${name} `, "m"));
  for (const name of OPTION_NAMES) assert.ok(text.includes(optionForm(name)), name);
  for (const status of [0, 1, 2, 3, 4]) assert.match(text, new RegExp(`^  ${status}  \\w`, "m"));
});

for (const name of COMMAND_NAMES) {
  test(`usageText() of ${name} has its form, its options and an example`, () => {
    const text = usageText(name);
    assert.ok(text.includes(`Usage: service ${commandForm(name)}\n`));
    for (const option of COMMANDS[name].options) assert.ok(text.includes(optionForm(option)));
    assert.match(text, new RegExp(`^  service .*\\b${name}\\b`, "m"));
  });

  test(`the examples of ${name} are valid commands`, () => {
    const lines = COMMANDS[name].examples.map(({ line }) => line.split(" "));
    const own = lines.filter(([program]) => program === "service");
    assert.ok(own.length > 0);
    for (const [, ...args] of own) assert.equal(parseArguments(args).command, name);
  });
}

for (const name of [null, ...COMMAND_NAMES]) {
  test(`usageText() of ${name} fits a terminal of ${WIDTH} columns`, () => {
    const text = usageText(name);
    for (const line of text.split("\n")) assert.ok(line.length <= WIDTH, line);
    assert.match(text, /[^\n]\n$/);
    assert.doesNotMatch(text, /undefined|\[object| $/m);
  });
}
