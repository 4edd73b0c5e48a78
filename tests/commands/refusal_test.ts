/** Configurations and logs that `serve`, `seal` and `verify` refuse. */
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { CONFIG_TEMPLATE } from "../../src/commands/config_template.ts";
import { runCli, withFolder, withInitialized } from "../../tools/support/program.ts";
import { withDeployment } from "../support/deployment.ts";
import { fillDeployment } from "../support/filled.ts";
import { withLatin1Path } from "../support/latin1_path.ts";

const UNSUPPORTED: [from: string, to: string][] = [
  ['mode = "open"', 'mode = "governed"'],
  ['mode = "open"', 'mode = "locked"'],
  ['anchor = "none"', 'anchor = "signed"'],
  ['anchor = "none"', 'anchor = "mirrored"'],
  ['anchor = "none"', 'anchor = "witnessed"'],
];

for (const command of [["serve"], ["seal"], ["verify", "--chain"]]) {
  test(`${command.join(" ")} exits 4 for an unsupported mode or anchor`, async () => {
    for (const change of command[0] === "serve" ? UNSUPPORTED : UNSUPPORTED.slice(1, 2)) {
      await withDeployment(async (deployment) => {
        await deployment.configure(...change);
        const { code, stdout, stderr } = await deployment.run(command);
        assert.deepEqual([code, stdout], [4, ""], stderr);
        assert.match(stderr, /service\.toml: \[(security|integrity)\] \w+ \w+ is not supported/);
        const left = await readdir(join(deployment.dir, "data"), { recursive: true });
        assert.deepEqual(left, ["log"]);
      });
    }
  });
}

test("serve exits 1 without a log directory, and creates none", () =>
  withFolder(async (dir) => {
    await writeFile(join(dir, "service.toml"), CONFIG_TEMPLATE);
    for (const command of ["serve", "seal", "verify"]) {
      const { code, stdout, stderr } = await runCli([command], { cwd: dir });
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(
        stderr,
        /^.*\/data\/log: no such directory; restore it from a backup, create .*\n$/,
      );
      assert.deepEqual(await readdir(dir), ["service.toml"]);
    }
  }));

type Damage = (logDir: string) => Promise<unknown>;

/** Replaces a string in a file. */
function edited(name: string, from: string, to: string): Damage {
  return async (logDir) => {
    const text = await readFile(join(logDir, name), "utf8");
    assert.ok(text.includes(from));
    await writeFile(join(logDir, name), text.replace(from, to));
  };
}

const DAMAGED: [name: string, status: number, reason: RegExp, damage: Damage][] = [
  ["a damaged tail", 1, /tail\.ndjson: corrupt/, edited("tail.ndjson", "upserted", "Upserted")],
  [
    "a manifest with an invalid schema",
    1,
    /manifest\.json: not a manifest of storage schema 1/,
    edited("manifest.json", '"min_writer":1', '"min_writer":0'),
  ],
  ["a newer format", 4, /min_reader/, edited("manifest.json", '"min_reader":1', '"min_reader":2')],
  ["a newer writer", 4, /min_writer/, edited("manifest.json", '"min_writer":1', '"min_writer":2')],
  ["a missing segment", 1, /segments\/\S+\.parquet/, async (logDir) => {
    await runCli(["seal", "--config", join(logDir, "../../service.toml")]);
    await rm(join(logDir, "segments"), { recursive: true });
    await mkdir(join(logDir, "segments"));
  }],
];

for (const [name, status, reason, damage] of DAMAGED) {
  test(`serve and seal refuse a log with ${name} and change nothing`, () =>
    withFolder(async (dir) => {
      await fillDeployment(dir, 1);
      const logDir = join(dir, "data", "log");
      await damage(logDir);
      const before = await readFile(join(logDir, "tail.ndjson"), "utf8");
      for (const command of ["seal", "serve"]) {
        const { code, stdout, stderr } = await runCli([command], { cwd: dir });
        assert.deepEqual([code, stdout], [status, ""], stderr);
        assert.match(stderr, reason);
      }
      assert.equal(await readFile(join(logDir, "tail.ndjson"), "utf8"), before);
      assert.deepEqual(await readdir(join(dir, "data")), ["log"]);
    }));
}

/** Runs the program in a directory whose name is Latin-1. The shell passes on the raw bytes. */
const inLatin1 = (folder: string) => [
  "sh",
  "-c",
  'dir="$1/caf$(printf "\\351")"; shift; mkdir -p "$dir" && cd "$dir" && exec "$@"',
  "sh",
  folder,
];

for (const args of [["init"], ["init", "sub"], ["serve"], ["verify", "--config", "a/b.toml"]]) {
  test(`${args.join(" ")} exits 2 in a directory whose name is not UTF-8`, () =>
    withFolder(async (folder) => {
      const { code, stderr } = await runCli(args, { wrapper: inLatin1(folder) });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /its absolute path is not valid UTF-8/);
      assert.equal((await readdir(folder)).length, 1, "no other directory was created");
    }));
}

for (const args of [["init"], ["backup"], ["verify", "--config"]]) {
  test(`${args.join(" ")} PATH exits 2 if PATH is not UTF-8`, () =>
    withInitialized(async (cwd) => {
      const before = await readdir(cwd, { recursive: true });
      const { code, stderr } = await runCli(args, { cwd, wrapper: withLatin1Path(cwd) });
      assert.equal(code, 2, stderr);
      assert.match(stderr, /\/caf\uFFFD: its absolute path is not valid UTF-8/);
      assert.deepEqual(await readdir(cwd, { recursive: true }), before);
    }));
}
