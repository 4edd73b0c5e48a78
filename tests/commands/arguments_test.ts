import assert from "node:assert/strict";
import { test } from "node:test";
import { type Invocation, type Options, parseArguments } from "../../src/commands/arguments.ts";
import type { CommandName } from "../../src/commands/command_table.ts";
import { CommandError, EXIT_USAGE } from "../../src/commands/exit.ts";
import { completionsFor, manPage, usageText } from "../../src/commands/usage.ts";
import { FULL_VERSION, VERSION } from "../../src/version.ts";

function commandOf(
  command: CommandName,
  options: Options = {},
  dir: string | undefined = undefined,
): Invocation {
  return { command, dir, options };
}

const FORMS: [line: string, invocation: Invocation][] = [
  ["--help", { text: usageText(null) }],
  ["-h", { text: usageText(null) }],
  ["serve --help", { text: usageText("serve") }],
  ["-h verify", { text: usageText("verify") }],
  ["frobnicate --help", { text: usageText(null) }],
  ["--completions bash", { text: completionsFor("bash") }],
  ["--completions=fish", { text: completionsFor("fish") }],
  ["--man", { text: manPage(VERSION) }],
  ["--version", { text: `${FULL_VERSION}\n` }],
  ["-V", { text: `${FULL_VERSION}\n` }],
  ["init", commandOf("init")],
  ["init demo", commandOf("init", {}, "demo")],
  ["--config x.toml init demo", commandOf("init", { config: "x.toml" }, "demo")],
  ["init -- --dir", commandOf("init", {}, "--dir")],
  ["serve", commandOf("serve")],
  ["--config x.toml serve", commandOf("serve", { config: "x.toml" })],
  ["serve --config x.toml", commandOf("serve", { config: "x.toml" })],
  ["serve --config=x.toml", commandOf("serve", { config: "x.toml" })],
  ["serve --config=-x.toml", commandOf("serve", { config: "-x.toml" })],
  ["seal --config x.toml", commandOf("seal", { config: "x.toml" })],
  ["verify", commandOf("verify")],
  ["append --source a --batch-id=-b", commandOf("append", { source: "a", "batch-id": "-b" })],
  ["tail --last 0 --follow", commandOf("tail", { last: "0", follow: "" })],
  ["streams", commandOf("streams")],
  ["--chain verify", commandOf("verify", { chain: "" })],
  ["backup to", commandOf("backup", {}, "to")],
  ["backup to --keep 7", commandOf("backup", { keep: "7" }, "to")],
  ["verify --chain --config x", commandOf("verify", { chain: "", config: "x" })],
];

for (const [line, invocation] of FORMS) {
  test(`parseArguments() parses: ${line}`, () => {
    assert.deepEqual(parseArguments(line.split(" ")), invocation);
  });
}

const MISTAKES: [args: string[], reason: RegExp][] = [
  [[], /missing command/],
  [[""], /unknown command ""/],
  [["restore"], /unknown command "restore"; use one of init, serve, .*, streams, backup$/],
  ...["project", "rebuild", "import", "query", "catalog", "erase-payload", "export-key"].map(
    (name): [string[], RegExp] => [[name], /unknown command/],
  ),
  [["verify", "--clean"], /--clean/],
  [["serve", "--chain"], /serve does not accept --chain/],
  [["serve", "--keep", "1"], /serve does not accept --keep/],
  [["backup"], /backup requires a directory$/],
  [["backup", ""], /empty path/],
  [["backup", "to", "--keep", "0"], /--keep requires a number from 1$/],
  [["init", "--chain"], /init does not accept --chain/],
  [["append"], /append requires --source/],
  [["append", "--source", "a", "--follow"], /append does not accept --follow/],
  [["streams", "--stream", "a"], /streams does not accept --stream/],
  [["tail", "--after="], /--after requires a position/],
  [["seal", "--port=1"], /Unknown option '--port'$/],
  [["serve", "-x"], /Unknown option '-x'$/],
  [["serve", "now"], /unexpected argument "now"/],
  [["init", "a", "b"], /unexpected argument "b"/],
  [["init", ""], /empty path/],
  [["serve", "--config"], /'--config <value>' argument missing/],
  [["serve", "--config="], /--config requires a path/],
  [["--config", "--help"], /'--config' argument is ambiguous$/],
  [["--config", "a", "--config", "b", "serve"], /may be given only once/],
  [["verify", "--chain=yes"], /'--chain' does not take an argument/],
  [["--help=me"], /--help' does not take an argument/],
  [["--man=1"], /'--man' does not take an argument/],
  [["--completions"], /'--completions <value>' argument missing/],
  [["--completions", "tcsh"], /unknown shell "tcsh"; use one of bash, zsh, fish$/],
  [["--completions", "bash", "--completions", "zsh"], /may be given only once/],
];

for (const [args, reason] of MISTAKES) {
  test(`parseArguments() rejects: ${JSON.stringify(args)}`, () => {
    assert.throws(() => parseArguments(args), (error) => {
      assert.ok(error instanceof CommandError);
      assert.equal(error.exitStatus, EXIT_USAGE);
      assert.match(error.message, reason);
      return true;
    });
  });
}
