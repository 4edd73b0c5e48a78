/** Behavior shared by all examples: help, a README entry, and errors that name their origin. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { untilReported, withFolder } from "../../tools/support/program.ts";
import { withDeployment, withServing } from "../../tests/support/deployment.ts";
import { withLatin1Path } from "../../tests/support/latin1_path.ts";
import { runExample, startExample } from "./support/run_script.ts";

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

/** A `SECRET` among the arguments stands for the path of a file with a secret. */
const WEBHOOK = ["--url", "http://127.0.0.1:1/", "--secret-file", "SECRET"];

async function withSecret(folder: string, args: string[]): Promise<string[]> {
  const path = join(folder, "secret");
  await writeFile(path, `whsec_${btoa("s".repeat(32))}`);
  return args.map((word) => word === "SECRET" ? path : word);
}

const UNREACHABLE: [name: string, args: string[]][] = [
  ["git_history", ["--repo", join(FOLDER, "..")]],
  ["tail_log", ["--once"]],
  ["tail_log", []],
  ["sqlite_view", ["--database", ":memory:"]],
  ["viewer/server", ["--port", "0"]],
  ["webhook", [...WEBHOOK, "--cursor", "none", "--given-up", "none"]],
];
for (const [name, args] of UNREACHABLE) {
  test(`${name} ${args.join(" ")} names a missing socket and gives up`, () =>
    withFolder(async (folder) => {
      const socket = join(folder, "none.sock");
      const words = ["--socket", socket, "--wait", "0", ...await withSecret(folder, args)];
      const { code, stderr } = await runExample(name, words);
      assert.equal(code, 1, stderr);
      assert.match(stderr, new RegExp(`connection to ${socket} failed.*ENOENT`));
    }));
}

for (const [name, args] of UNREACHABLE) {
  test(`${name} ${args.join(" ")} does not repeat an attempt that cannot succeed`, () =>
    withFolder(async (folder) => {
      const file = join(folder, "file");
      await writeFile(file, "");
      const words = await withSecret(folder, args);
      const { code, stderr } = await runExample(name, ["--socket", file, ...words]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /failed: the path is not a socket\n$/);
      assert.doesNotMatch(stderr, /retrying/);
      const long = await runExample(name, ["--socket", join(folder, "s".repeat(108)), ...words]);
      assert.equal(long.code, 1, long.stderr);
      assert.match(long.stderr, /^unixFetch\(\) expects the path of a Unix socket, .* bytes\n$/);
    }));
}

const EARLY: [name: string, args: string[]][] = [
  ["sqlite_view", ["--database", ":memory:"]],
  ["tail_log", []],
  ["webhook", [...WEBHOOK, "--cursor", "none", "--given-up", "none"]],
];
for (const [name, args] of EARLY) {
  test(`${name} waits for a service that starts after it`, () =>
    withDeployment(async (deployment) => {
      const { folder, socketPath } = deployment;
      const socket = ["--socket", socketPath, "--once"];
      const example = startExample(name, [...socket, ...await withSecret(folder, args)]);
      await untilReported(example, "ENOENT");
      await deployment.start();
      const { code, stderr } = await example.exited;
      assert.equal(code, 0, stderr);
    }));
}

const NOT_UTF8: [name: string, args: string[]][] = [
  ["tail_log", ["--once", "--cursor"]],
  ["sqlite_view", ["--database"]],
  ["webhook", [...WEBHOOK, "--given-up", "given-up", "--cursor"]],
  ["webhook", [...WEBHOOK, "--cursor", "cursor", "--given-up"]],
];
for (const [name, args] of NOT_UTF8) {
  test(`${name} ${args.at(-1)} refuses a path that is not UTF-8`, () =>
    withFolder(async (folder) => {
      const words = ["--socket", join(folder, "none.sock"), "--wait", "0"];
      words.push(...await withSecret(folder, args));
      const wrapper = withLatin1Path(folder);
      const started = startExample(name, words, ["--allow-all"], wrapper);
      const { code, stderr } = await started.exited;
      assert.equal(code, 2, stderr);
      assert.match(stderr, /its absolute path is not valid UTF-8/);
      assert.deepEqual(await readdir(folder), ["secret"]);
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
