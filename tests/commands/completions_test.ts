/** Completions that a shell offers with the script. */
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
import { completionsFor } from "../../src/commands/completions.ts";
import { runCli } from "../../tools/support/program.ts";

function has(shell: string): boolean {
  return spawnSync(shell, ["-c", "exit"]).status === 0;
}

function run(shell: string, args: string[], input = ""): string {
  const options = { encoding: "utf8", input, env: { ...BARE, PATH: "/usr/bin:/bin" } } as const;
  const { status, stdout, stderr } = spawnSync(shell, args, options);
  assert.equal(status, 0, stderr);
  assert.equal(stderr, "");
  return stdout;
}

/** Ignores the settings of the user. */
const BARE = { HOME: "/nonexistent", TERM: "dumb", LC_ALL: "C" };

/** Returns the completions of bash for the last word. */
function offeredByBash(words: string[]): string[] {
  const typed = words.map((word) => `'${word}'`).join(" ");
  const script = `${completionsFor("bash")}
COMP_WORDS=(service ${typed}); COMP_CWORD=${words.length}
_service
printf '%s\\n' "\${COMPREPLY[@]}"`;
  return run("bash", ["--norc", "-c", script]).split("\n").filter((word) => word !== "");
}

const GLOBAL = ["--config", "-h", "--help"];
const ANYWHERE = ["-V", "--version", "--completions", "--man"];

/** Tab completes the last word of each. */
const TYPED: [words: string[], offered: string[]][] = [
  [[""], [...COMMAND_NAMES, "--config", "--chain", "-h", "--help", ...ANYWHERE]],
  [["s"], ["serve", "seal"]],
  [["--c"], ["--config", "--chain", "--completions"]],
  [["verify", ""], ["--config", "--chain", "-h", "--help"]],
  [["verify", "--ch"], ["--chain"]],
  [["serve", ""], GLOBAL],
  [["serve", "--ch"], []],
  [["--config", "x.toml", "se"], ["serve", "seal"]],
  [["--config", "serve", ""], [
    ...COMMAND_NAMES,
    "--config",
    "--chain",
    "-h",
    "--help",
    ...ANYWHERE,
  ]],
  [["--config", "=", "x.toml", "v"], ["verify"]],
  [["--config", ""], []],
  [["--config", "="], []],
  [["--config", "=", "s"], []],
  [["init", ""], []],
  [["init", "--"], ["--help"]],
  [["--completions", ""], [...SHELLS]],
  [["--completions", "=", "z"], ["zsh"]],
];

for (const [words, offered] of TYPED) {
  test(`in bash, service ${words.join(" ")}<Tab> offers: ${offered.join(" ")}`, (context) => {
    if (!has("bash")) return context.skip("there is no bash");
    assert.deepEqual(offeredByBash(words), offered);
  });
}

test("zsh loads its script, which defines a function for the program", (context) => {
  if (!has("zsh")) return context.skip("there is no zsh");
  run("zsh", ["-f", "-n"], completionsFor("zsh"));
  const script = `autoload -Uz compinit && compinit -D -u
${completionsFor("zsh")}
print -- $_comps[service] $+functions[_service]`;
  assert.equal(run("zsh", ["-f", "-c", script]), "_service 1\n");
});

/** Returns the completions of fish for a line, as far as they come from the script. */
function offeredByFish(line: string): string[] {
  const script = `${completionsFor("fish")}\ncomplete -C '${line}'`;
  const lines = run("fish", ["--no-config", "-c", script]).split("\n");
  return lines.map((line) => line.split("\t")[0]!).filter((word) => word !== "");
}

const FISH_LINES: [line: string, offered: string[]][] = [
  ["service s", ["seal", "serve"]],
  ["service verify --ch", ["--chain"]],
  ["service serve --ch", []],
  ["service --completions ", ["bash", "fish", "zsh"]],
  ["service serve --conf", ["--config"]],
  ["service serve --vers", []],
];

for (const [line, offered] of FISH_LINES) {
  test(`in fish, ${line}<Tab> offers: ${offered.join(" ")}`, (context) => {
    if (!has("fish")) return context.skip("there is no fish");
    assert.deepEqual(offeredByFish(line).sort(), offered);
  });
}

for (const shell of SHELLS) {
  test(`--completions ${shell} prints a script with every command and option`, async () => {
    const { code, stdout, stderr } = await runCli(["--completions", shell]);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, completionsFor(shell));
    for (const name of COMMAND_NAMES) assert.match(stdout, new RegExp(`\\b${name}\\b`));
    for (const name of OPTION_NAMES) assert.match(stdout, new RegExp(`(--|-l )${name}\\b`));
  });
}

test("no text of the table has a character that shells or troff interpret", () => {
  const texts = [
    ...COMMAND_NAMES.map((name) => COMMANDS[name].summary),
    ...OPTION_NAMES.map((name) => OPTIONS[name].effect),
  ];
  for (const text of texts) assert.doesNotMatch(text, /['"`\\$[\]]/, text);
});
