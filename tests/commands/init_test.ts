import assert from "node:assert/strict";
import {
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { CONFIG_TEMPLATE } from "../../src/commands/config_template.ts";
import { CommandError, EXIT_FAILURE } from "../../src/commands/exit.ts";
import { init } from "../../src/commands/init.ts";
import { runCli, withFolder } from "../../tools/support/program.ts";

const quiet = () => {};

/** Lists every path in a folder with kind, mode and content. */
async function tree(folder: string, prefix = ""): Promise<Record<string, string>> {
  const entries: Record<string, string> = {};
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const stat = await lstat(path);
    const mode = (stat.mode & 0o777).toString(8);
    if (stat.isDirectory()) {
      entries[prefix + name] = `folder ${mode}`;
      Object.assign(entries, await tree(path, `${prefix}${name}/`));
    } else {
      const content = stat.isFile() ? await readFile(path, "utf8") : "";
      entries[prefix + name] = `${stat.mode.toString(8)} ${stat.mtimeMs} ${content}`;
    }
  }
  return entries;
}

async function assertRefused(dir: string, culprit: string): Promise<void> {
  const before = await tree(dir);
  await assert.rejects(init(dir, quiet), (error) => {
    assert.ok(error instanceof CommandError, String(error));
    assert.equal(error.exitStatus, EXIT_FAILURE);
    assert.ok(error.message.includes(culprit), error.message);
    return true;
  });
  assert.deepEqual(await tree(dir), before);
}

async function writeInFolder(folder: string, name: string): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, name), "");
}

async function assertComplete(dir: string): Promise<void> {
  assert.equal(await readFile(join(dir, "service.toml"), "utf8"), CONFIG_TEMPLATE);
  assert.equal((await lstat(join(dir, "service.toml"))).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(join(dir, "data")), ["log"]);
  assert.deepEqual(await readdir(join(dir, "data", "log")), []);
  assert.deepEqual((await readdir(dir)).filter((name) => name.includes("candidate")), []);
}

test("init() creates folders 0700, a configuration 0600 and an empty log, with every parent", () =>
  withFolder(async (folder) => {
    const dir = join(folder, "a", "b", "deployment");
    assert.equal(await init(dir, quiet), "initialized");
    await assertComplete(dir);
    for (const path of ["a", "a/b", "a/b/deployment", "a/b/deployment/data"]) {
      assert.equal((await lstat(join(folder, path))).mode & 0o777, 0o700);
    }
    assert.equal((await lstat(join(dir, "data", "log"))).mode & 0o777, 0o700);
  }));

test("init() repeated rewrites nothing", () =>
  withFolder(async (dir) => {
    await init(dir, quiet);
    await utimes(join(dir, "service.toml"), 1000, 1000);
    const before = await tree(dir);
    const { ino } = await lstat(join(dir, "service.toml"));
    assert.equal(await init(dir, quiet), "already initialized");
    assert.deepEqual(await tree(dir), before);
    assert.equal((await lstat(join(dir, "service.toml"))).ino, ino);
  }));

test("init() keeps unrelated files beside the deployment", () =>
  withFolder(async (dir) => {
    await writeFile(join(dir, "notes.md"), "mine");
    await mkdir(join(dir, "src"));
    await symlink("nowhere", join(dir, "link"));
    await init(dir, quiet);
    await init(dir, quiet);
    assert.equal(await readFile(join(dir, "notes.md"), "utf8"), "mine");
    assert.deepEqual(await readdir(dir), ["data", "link", "notes.md", "service.toml", "src"]);
  }));

test("init() follows a symlink to the folder of the deployment", () =>
  withFolder(async (folder) => {
    await mkdir(join(folder, "real"));
    await symlink("real", join(folder, "link"));
    assert.equal(await init(join(folder, "link"), quiet), "initialized");
    await assertComplete(join(folder, "real"));
  }));

const CUT_OFF: [name: string, prepare: (dir: string) => Promise<unknown>][] = [
  ["before data/", () => Promise.resolve()],
  ["after data/", (dir) => mkdir(join(dir, "data"))],
  ["after data/log/", (dir) => mkdir(join(dir, "data", "log"), { recursive: true })],
  ["while it wrote the configuration", async (dir) => {
    await mkdir(join(dir, "data", "log"), { recursive: true });
    await writeFile(join(dir, ".service.toml.candidate-0011223344556677"), "[da");
  }],
  ["before the rename", async (dir) => {
    await mkdir(join(dir, "data", "log"), { recursive: true });
    await writeFile(join(dir, ".service.toml.candidate-0011223344556677"), CONFIG_TEMPLATE);
  }],
];

for (const [name, prepare] of CUT_OFF) {
  test(`init() completes a run that was interrupted ${name}`, () =>
    withFolder(async (dir) => {
      await prepare(dir);
      assert.equal(await init(dir, quiet), "initialized");
      await assertComplete(dir);
      assert.equal(await init(dir, quiet), "already initialized");
    }));
}

test("init() run concurrently creates one complete deployment", () =>
  withFolder(async (folder) => {
    const dir = join(folder, "deployment");
    const outcomes = await Promise.all(Array.from({ length: 16 }, () => init(dir, quiet)));
    assert.ok(outcomes.includes("initialized"));
    await assertComplete(dir);
  }));

const UNCOMMITTED: [name: string, culprit: string, prepare: (dir: string) => Promise<unknown>][] = [
  ["a log without configuration", "data/log", async (dir) => {
    await mkdir(join(dir, "data", "log"), { recursive: true });
    await writeFile(join(dir, "data", "log", "tail.ndjson"), "");
  }],
  ["a stray file in data/", "data/stray", async (dir) => {
    await mkdir(join(dir, "data"));
    await writeFile(join(dir, "data", "stray"), "");
  }],
  ["data that is a file", "data", (dir) => writeFile(join(dir, "data"), "")],
  ["data that is a symlink", "data: is a symlink", async (dir) => {
    await mkdir(join(dir, "elsewhere"));
    await symlink("elsewhere", join(dir, "data"));
  }],
  ["data/log that is a symlink", "data/log: is a symlink", async (dir) => {
    await mkdir(join(dir, "elsewhere"));
    await mkdir(join(dir, "data"));
    await symlink("../elsewhere", join(dir, "data", "log"));
  }],
  [
    "service.toml that is a dangling symlink",
    "service.toml: is a symlink",
    (dir) => symlink("nowhere", join(dir, "service.toml")),
  ],
  [
    "service.toml that is a folder",
    "service.toml: is a folder",
    (dir) => mkdir(join(dir, "service.toml")),
  ],
  [
    "a foreign configuration",
    "service.toml",
    (dir) => writeFile(join(dir, "service.toml"), "[data]\n"),
  ],
  [
    "a configuration that is no text",
    "service.toml",
    (dir) => writeFile(join(dir, "service.toml"), new Uint8Array([0xff])),
  ],
  ["an old database that is a symlink", "warehouse.duckdb", async (dir) => {
    await mkdir(join(dir, "data"));
    await symlink("nowhere", join(dir, "data", "warehouse.duckdb"));
  }],
];

for (const [name, culprit, prepare] of UNCOMMITTED) {
  test(`init() refuses ${name} and leaves it`, () =>
    withFolder(async (dir) => {
      await prepare(dir);
      await assertRefused(dir, culprit);
    }));
}

const COMMITTED: [name: string, culprit: string, change: (dir: string) => Promise<unknown>][] = [
  [
    "an edited configuration",
    "service.toml",
    (dir) =>
      writeFile(join(dir, "service.toml"), CONFIG_TEMPLATE.replace('token = ""', 'token = "x"')),
  ],
  ["a configuration that is a symlink", "service.toml: is a symlink", async (dir) => {
    await rename(join(dir, "service.toml"), join(dir, "real.toml"));
    await symlink("real.toml", join(dir, "service.toml"));
  }],
  [
    "a missing data folder",
    "data: is missing",
    (dir) => rename(join(dir, "data"), join(dir, "moved")),
  ],
  [
    "a missing log folder",
    "data/log: is missing",
    (dir) => rename(join(dir, "data", "log"), join(dir, "moved")),
  ],
  ["a stray file in data/", "data/stray", (dir) => writeFile(join(dir, "data", "stray"), "")],
  [
    "a stray file in data/log/",
    "log/stray",
    (dir) => writeFile(join(dir, "data", "log", "stray"), ""),
  ],
  [
    "a tail that is a symlink",
    "tail.ndjson: is a symlink",
    (dir) => symlink("/etc/hostname", join(dir, "data", "log", "tail.ndjson")),
  ],
  [
    "a tail without a manifest",
    "holds events but no manifest.json; restore the whole folder from a backup",
    (dir) => writeFile(join(dir, "data", "log", "tail.ndjson"), "{"),
  ],
  [
    "a pending file without a manifest",
    "holds events but no manifest.json",
    (dir) => writeInFolder(join(dir, "data", "log", "pending"), "x.ndjson"),
  ],
  [
    "a segment without a manifest",
    "holds events but no manifest.json",
    (dir) => writeInFolder(join(dir, "data", "log", "segments"), "x.parquet"),
  ],
  [
    "a file at the socket path",
    "ground.sock: is a file",
    (dir) => writeFile(join(dir, "data", "ground.sock"), ""),
  ],
];

for (const [name, culprit, change] of COMMITTED) {
  test(`init() repeated refuses ${name} and leaves it`, () =>
    withFolder(async (dir) => {
      await init(dir, quiet);
      await change(dir);
      await assertRefused(dir, culprit);
    }));
}

test("init() accepts the log's files, the socket and old files in the data folder", () =>
  withFolder(async (dir) => {
    await init(dir, quiet);
    const data = join(dir, "data");
    for (const name of [".lock", "manifest.json", "tail.ndjson"]) {
      await writeFile(join(data, "log", name), "");
    }
    for (const name of ["pending", "segments"]) await mkdir(join(data, "log", name));
    for (const name of ["warehouse.duckdb", "warehouse.duckdb.wal"]) {
      await writeFile(join(data, name), "");
    }
    await writeFile(join(data, ".warehouse.duckdb.candidate-1"), "");
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(data, "ground.sock"), resolve));
    try {
      assert.equal(await init(dir, quiet), "already initialized");
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  }));

test("init() accepts a first start that was interrupted before the manifest", () =>
  withFolder(async (dir) => {
    await init(dir, quiet);
    const log = join(dir, "data", "log");
    await writeFile(join(log, "tail.ndjson"), "");
    for (const name of ["pending", "segments"]) await mkdir(join(log, name));
    assert.equal(await init(dir, quiet), "already initialized");
  }));

test("init() accepts old files before the configuration exists", () =>
  withFolder(async (dir) => {
    await mkdir(join(dir, "data"));
    await writeFile(join(dir, "data", "warehouse.duckdb"), "old");
    assert.equal(await init(dir, quiet), "initialized");
    assert.equal(await readFile(join(dir, "data", "warehouse.duckdb"), "utf8"), "old");
  }));

test("init() refuses a path through a file", () =>
  withFolder(async (folder) => {
    await writeFile(join(folder, "file"), "");
    await assert.rejects(init(join(folder, "file"), quiet), /file/);
    await assert.rejects(init(join(folder, "file", "deployment"), quiet), /file/);
    assert.equal(await readFile(join(folder, "file"), "utf8"), "");
  }));

test("init exits 0 and reports only on standard error", () =>
  withFolder(async (folder) => {
    const first = await runCli(["init", "deployment", "--config", "ignored"], { cwd: folder });
    assert.deepEqual(first, {
      code: 0,
      signal: null,
      stdout: "",
      stderr: "initialized deployment\n",
    });
    const dir = join(folder, "deployment");
    const second = await runCli(["init", dir]);
    assert.equal(second.code, 0);
    assert.equal(second.stderr, `already initialized ${dir}\n`);
    const third = await runCli(["init"], { cwd: dir });
    assert.equal(third.code, 0);
    assert.match(third.stderr, /^already initialized \.\n$/);
  }));

test("init exits 1 with one line for a refused folder", () =>
  withFolder(async (dir) => {
    await writeFile(join(dir, "service.toml"), "");
    const { code, stdout, stderr } = await runCli(["init", dir]);
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /^[^\n]*service\.toml[^\n]*\n$/);
  }));

test("init in several concurrent processes creates one complete deployment", () =>
  withFolder(async (folder) => {
    const dir = join(folder, "deployment");
    const exits = await Promise.all([1, 2, 3, 4].map(() => runCli(["init", dir])));
    for (const { code, stderr } of exits) assert.equal(code, 0, stderr);
    await assertComplete(dir);
  }));
