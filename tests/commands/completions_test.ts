/** Shell completions offered by the generated scripts. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import {
  COMMAND_NAMES,
  COMMANDS,
  OPTION_NAMES,
  OPTIONS,
  SHELLS,
} from "../../src/commands/command_table.ts";
import { completionsFor } from "../../src/commands/usage.ts";
import { runCli } from "../../tools/support/program.ts";

/** Runs a script without user settings. @returns null if the shell is not installed. */
function run(shell: string, args: string[]): string | null {
  const env = { HOME: "/nonexistent", TERM: "dumb", LC_ALL: "C", PATH: "/usr/bin:/bin" };
  const { error, status, stdout, stderr } = spawnSync(shell, args, { encoding: "utf8", env });
  if (error !== undefined) return null;
  assert.deepEqual([status, stderr], [0, ""]);
  return stdout;
}

const EVERYTHING = [...COMMAND_NAMES, ...OPTION_NAMES.map((name) => `--${name}`)];

/** Words typed before Tab, and the completions offered for the last word. */
const TYPED: [words: string[], offered: string[]][] = [
  [[""], EVERYTHING],
  [["s"], ["serve", "seal", "streams"]],
  [["--c"], ["--config", "--chain", "--completions"]],
  [["verify", "--ch"], ["--chain"]],
  [["--config", "x.toml", "se"], ["serve", "seal"]],
  [["--config", ""], []],
  [["init", ""], []],
  [["--completions", ""], [...SHELLS]],
];

for (const [words, offered] of TYPED) {
  test(`in bash, service ${words.join(" ")}<Tab> offers: ${offered.join(" ")}`, (context) => {
    const script = `${completionsFor("bash")}
COMP_WORDS=(service ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}
_service
printf '%s\\n' "\${COMPREPLY[@]}"`;
    const printed = run("bash", ["--norc", "-c", script]);
    if (printed === null) return context.skip("bash is not installed");
    assert.deepEqual(printed.split("\n").filter((word) => word !== ""), offered);
  });
}

test("zsh loads its script, which defines a completion function", (context) => {
  const script = `autoload -Uz compinit && compinit -D -u
${completionsFor("zsh")}
print -- $_comps[service] $+functions[_service]`;
  const printed = run("zsh", ["-f", "-c", script]);
  if (printed === null) return context.skip("zsh is not installed");
  assert.equal(printed, "_service 1\n");
});

test("fish offers commands, and shells to --completions", (context) => {
  for (
    const [line, offered] of [["s", "seal,serve,streams"], ["--completions ", "bash,fish,zsh"]]
  ) {
    const script = `${completionsFor("fish")}\ncomplete -C 'service ${line}'`;
    const printed = run("fish", ["--no-config", "-c", script]);
    if (printed === null) return context.skip("fish is not installed");
    const words = printed.trimEnd().split("\n").map((line) => line.split("\t")[0]);
    assert.equal(words.sort().join(","), offered);
  }
});

for (const shell of SHELLS) {
  test(`--completions ${shell} prints a script that names every command and option`, async () => {
    const { code, stdout, stderr } = await runCli(["--completions", shell]);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, completionsFor(shell));
    for (const name of COMMAND_NAMES) assert.match(stdout, new RegExp(`\\b${name}\\b`));
    for (const name of OPTION_NAMES) assert.match(stdout, new RegExp(`(--|-l )${name}\\b`));
  });
}

test("no string in the usage table contains characters that shells or troff interpret", () => {
  const texts = [
    ...COMMAND_NAMES.map((name) => COMMANDS[name].summary),
    ...OPTION_NAMES.map((name) => OPTIONS[name].effect),
  ];
  for (const text of texts) assert.doesNotMatch(text, /['"`\\$[\]]/, text);
});
