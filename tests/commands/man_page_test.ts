/** The manual page has everything that `--help` has, and troff accepts it without warnings. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import {
  COMMAND_NAMES,
  COMMANDS,
  ENVIRONMENT,
  EXITS,
  OPTION_NAMES,
  OPTIONS,
} from "../../src/commands/command_table.ts";
import { manPage } from "../../src/commands/man_page.ts";
import { runCli } from "../../tools/support/program.ts";

const PAGE = manPage("0.2.0");

/** Escapes a text of the table like the page. */
const spelled = (text: string) => text.replaceAll("-", "\\-");

test("manPage() describes commands, options, statuses and variables like --help", () => {
  const texts = [
    ...COMMAND_NAMES.flatMap((name) => {
      const { summary, description, examples } = COMMANDS[name];
      return [summary, ...description, ...examples.map(({ line }) => line)];
    }),
    ...OPTION_NAMES.map((name) => OPTIONS[name].effect),
    ...[...Object.values(EXITS), ...Object.values(ENVIRONMENT)].map((text) => text.slice(1)),
  ];
  for (const text of texts) assert.ok(PAGE.includes(spelled(text)), text);
});

test("manPage() has the sections of a manual page in order", () => {
  const sections = [...PAGE.matchAll(/^\.SH (.*)$/gm)].map((match) => match[1]);
  assert.deepEqual(sections, [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "COMMANDS",
    "OPTIONS",
    "FILES",
    "ENVIRONMENT",
    "EXIT STATUS",
    "EXAMPLES",
  ]);
});

test("manPage() has no line that troff would misinterpret", () => {
  const requests = /^\.(TH|SH|SS|PP|TP|B|br|nf|fi|RS|RE)( |$)/;
  for (const line of PAGE.split("\n").slice(0, -1)) {
    assert.ok(requests.test(line) || /^[^.']/.test(line), line);
  }
});

test("groff formats what --man prints, without a warning", async (context) => {
  const { code, stdout } = await runCli(["--man"]);
  assert.equal(code, 0);
  const options = { input: stdout, encoding: "utf8" } as const;
  const formatted = spawnSync("groff", ["-man", "-Tascii", "-ww", "-P-cbou"], options);
  if (formatted.error !== undefined) return context.skip("there is no groff");
  assert.equal(formatted.stderr, "");
  assert.match(formatted.stdout, /^SERVICE\(1\) +User Commands +SERVICE\(1\)$/m);
  assert.match(formatted.stdout, /service verify \[--config <PATH>\] \[--chain\]$/m);
});
