/** A closed standard output, with the real program. */
import assert from "node:assert/strict";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, withInitialized } from "../../tools/support/program.ts";

/** Runs the program with a pipe that nobody reads. Standard error ends with its exit status. */
async function runUnread(args: string[]): Promise<string> {
  const wrapper = ["sh", "-c", '("$@"; echo "status $?" >&2) | :', "sh"];
  return (await runCli(args, { wrapper })).stderr;
}

test("a closed standard output changes neither what a command does nor its exit status", () =>
  withInitialized(async (dir) => {
    const config = ["--config", join(dir, "service.toml")];
    const copies = join(dir, "copies");
    for (const args of [["--help"], ["--version"], ["--man"], ["--completions=zsh"]]) {
      assert.equal(await runUnread(args), "status 0\n", args[0]);
    }
    for (let copy = 0; copy < 2; copy++) {
      const told = await runUnread(["backup", copies, "--keep=1", ...config]);
      assert.match(told, copy === 0 ? /^status 0\n$/ : /^backup: removed \S+\nstatus 0\n$/);
    }
    assert.equal((await readdir(copies)).filter((name) => /^\d/.test(name)).length, 1);
    const told = await runUnread(["verify", ...config]);
    assert.match(told, /^verified an empty log, chain head \w+\nstatus 0\n$/);
    await writeFile(join(dir, "data", "log", "manifest.json"), "{");
    assert.match(await runUnread(["verify", ...config]), /^manifest_invalid: .*\nstatus 3\n$/);
  }));
