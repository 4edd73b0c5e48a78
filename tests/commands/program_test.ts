/** The name of the program, and the runtime that it requires. */
import assert from "node:assert/strict";
import { readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { programName } from "../../src/commands/command_table.ts";
import { run } from "../../src/commands/run.ts";
import { runCli, withFolder, withInitialized } from "../../tools/support/program.ts";
import { absenceOf, executableOf, TESTED_EXECUTABLE } from "../../tools/support/runtimes.ts";
import { olderFlags } from "../support/older_runtime.ts";

const NAMES: [argv: string[], name: string][] = [
  [["./eventlog", "/tmp/deno-compile-service/cli.js"], "eventlog"],
  [["service", "/tmp/deno-compile-service/cli.js"], "service"],
  [["/usr/bin/node", "/usr/local/bin/eventlog"], "eventlog"],
  [["/usr/bin/node", "/srv/checkout/cli.ts"], "service"],
  [["/usr/bin/deno", "/srv/checkout/cli.ts"], "service"],
  [["/opt/it's mine", "/tmp/cli.js"], "service"],
  [[], "service"],
];
for (const [argv, name] of NAMES) {
  test(`programName() is ${name} for ${argv.join(" ")}`, () => {
    assert.equal(programName(argv), name);
  });
}

const node = executableOf("node");
const skip = node === null ? absenceOf("node") : false;

test(
  "help, manual page, completions and messages use the name by which the program was called",
  { skip },
  () =>
    withFolder(async (folder) => {
      const executable = join(folder, "eventlog");
      await symlink(
        TESTED_EXECUTABLE ?? fileURLToPath(new URL("../../cli.ts", import.meta.url)),
        executable,
      );
      const wrapper = TESTED_EXECUTABLE === undefined ? [node!] : [];
      const options = ["--help", "--man", "--completions=bash", "--completions=zsh"];
      for (const args of [...options.map((option) => [option]), ["init", "--help"]]) {
        const { code, stdout } = await runCli(args, { executable, wrapper });
        assert.equal(code, 0);
        assert.match(stdout, /\beventlog\b/i, args.join(" "));
        // The configuration file and the systemd unit keep their names.
        assert.doesNotMatch(stdout.replaceAll("service.toml", ""), /(?<!the )\bservice\b/i);
      }
      const { code, stdout, stderr } = await runCli(["query"], { executable, wrapper });
      assert.deepEqual([code, stdout], [2, ""]);
      assert.match(stderr, /^unknown command "query"; .*\nRun eventlog --help for usage\n$/);
    }),
);

const OLDER = [
  ["node", "22.17.1", "Node 22.18 or later; this is Node 22.17.1"],
  ["node", "20.20.0", "Node 22.18 or later; this is Node 20.20.0"],
  ["deno", "2.8.9", "Deno 2.9 or later; this is Deno 2.8.9"],
  ["deno", "1.46.3", "Deno 2.9 or later; this is Deno 1.46.3"],
] as const;

for (const [name, version, needed] of OLDER) {
  test(
    `an older runtime is rejected before anything else runs: ${name} ${version}`,
    {
      skip: TESTED_EXECUTABLE === undefined
        ? executableOf(name) === null ? absenceOf(name) : false
        : "an executable embeds its runtime",
    },
    () =>
      withFolder(async (folder) => {
        const dir = join(folder, "new");
        const { code, stdout, stderr } = await runCli(["init", dir], olderFlags(name, version));
        assert.deepEqual([code, stdout], [1, ""]);
        assert.equal(stderr, `this program needs ${needed}\n`);
        assert.deepEqual(await readdir(folder), []);
      }),
  );
}

test("run() reports at the start of a service that a build embeds an older runtime", () =>
  withInitialized(async (dir) => {
    const lines: string[] = [];
    const terminal = {
      print: assert.fail,
      report: lines.push.bind(lines),
      showProgress() {},
      stop: AbortSignal.abort(),
    };
    const config = join(dir, "service.toml");
    await rm(join(dir, "data"), { recursive: true });
    const { versions } = process;
    const older = { ...versions, ["deno" in versions ? "deno" : "node"]: "2.6.10" };
    Object.defineProperty(process, "versions", { value: older, configurable: true });
    try {
      assert.equal(await run(["--config", config, "serve"], terminal), 1);
    } finally {
      Object.defineProperty(process, "versions", { value: versions, configurable: true });
    }
    const told = /only for tests: this program needs \w+ [\d.]+ or later; this is \w+ 2\.6\.10\n/;
    assert.match(lines.join("\n"), told);
    assert.match(lines.join("\n"), /no such directory/);
  }));
