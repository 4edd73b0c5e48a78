/** Behavior shared by all examples: help, a README entry, and errors that name their origin. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { withFolder } from "../../tools/support/program.ts";
import { withServing } from "../../tests/support/deployment.ts";
import { runExample } from "./support/run_script.ts";

const FOLDER = fileURLToPath(new URL("../../examples", import.meta.url));
const scripts = readdirSync(FOLDER).filter((name) => name.endsWith(".ts"))
  .map((name) => name.slice(0, -".ts".length));

for (const name of scripts) {
  test(`${name} --help prints its usage`, async () => {
    const { code, stdout, stderr } = await runExample(name, ["--help"]);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.ok(stdout.startsWith(`usage: ${name} --socket SOCKET`), stdout);
  });
}

test("examples/README.md has an entry for each example", () => {
  const listed = readFileSync(join(FOLDER, "README.md"), "utf8");
  const named = new Set(["README.md", "deno.json", "package.json", "support", "tests"]);
  for (const name of readdirSync(FOLDER).filter((name) => !named.has(name))) {
    assert.ok(new RegExp(`^\\| \\[\`${name}`, "m").test(listed), name);
  }
});

const UNREACHABLE: [name: string, args: string[]][] = [
  ["git_history", ["--repo", join(FOLDER, "..")]],
  ["tail_log", ["--once"]],
  ["tail_log", []],
  ["sqlite_view", ["--database", ":memory:"]],
];
for (const [name, args] of UNREACHABLE) {
  test(`${name} ${args.join(" ")} names a missing socket and gives up`, () =>
    withFolder(async (folder) => {
      const socket = join(folder, "none.sock");
      const { code, stderr } = await runExample(name, ["--socket", socket, "--wait", "0", ...args]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, new RegExp(`connection to ${socket} failed.*ENOENT`));
    }));
}

for (const [name, args] of UNREACHABLE) {
  test(`${name} ${args.join(" ")} does not repeat an attempt that cannot succeed`, () =>
    withFolder(async (folder) => {
      const file = join(folder, "file");
      await writeFile(file, "");
      const { code, stderr } = await runExample(name, ["--socket", file, ...args]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /failed: the path is not a socket\n$/);
      assert.doesNotMatch(stderr, /retrying/);
      const long = await runExample(name, ["--socket", join(folder, "s".repeat(108)), ...args]);
      assert.equal(long.code, 1, long.stderr);
      assert.match(long.stderr, /^unixFetch\(\) expects the path of a Unix socket, .* bytes\n$/);
    }));
}

test("sqlite_view reports whether an error comes from the service or the database", () =>
  withServing(async (served) => {
    const { folder, socketPath: socket } = served;
    const run = (...args: string[]) => runExample("sqlite_view", ["--socket", socket, ...args]);
    const database = await run("--database", join(folder, "none", "view.db"));
    assert.deepEqual([database.code, database.stderr.split(":")[0]], [1, "SQLite error"]);
    const service = await run("--database", join(folder, "view.db"), "--limit", "0");
    assert.equal(service.code, 1);
    assert.match(service.stderr, /^service error: invalid_replay_request: /);
  }));
