/** The name of the program, and the runtime that it requires. */
import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { programName } from "../../src/commands/command_table.ts";
import { runCli, withFolder } from "../../tools/support/program.ts";
import { absenceOf, executableOf, TESTED_EXECUTABLE } from "../../tools/support/runtimes.ts";

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
      const { stderr } = await runCli(["query"], { executable, wrapper });
      assert.match(stderr, /\nRun eventlog --help for usage\n$/);
    }),
);

test(
  "an older Node is rejected before anything else runs, and the message gives the required version",
  {
    skip: TESTED_EXECUTABLE === undefined ? skip : "an executable embeds its runtime",
  },
  () =>
    withFolder(async (folder) => {
      const versions = "{ value: { ...process.versions, node: '22.17.1' } }";
      const older = `data:text/javascript,Object.defineProperty(process, 'versions', ${versions})`;
      const nodeFlags = ["--import", older];
      const { code, stdout, stderr } = await runCli(["init", folder], {
        runtime: "node",
        nodeFlags,
      });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.equal(stderr, "this program needs Node 22.18 or later; this is Node 22.17.1\n");
    }),
);
