import assert from "node:assert/strict";
import {
  chmod,
  chown,
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
import { dirname, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { CONFIG_FILE_BYTES_MAX } from "../../src/commands/config.ts";
import { CONFIG_TEMPLATE } from "../../src/commands/config_template.ts";
import { CommandError, EXIT_FAILURE } from "../../src/commands/exit.ts";
import { init } from "../../src/commands/init.ts";
import { runCli, withFolder, withInitialized } from "../../tools/support/program.ts";
import { treeOf } from "../support/file_tree.ts";
import { skipLoudly } from "../faults/support/skip.ts";

/** A user that owns nothing else. */
const NOBODY = 65534;

async function assertRefused(dir: string, culprit: string): Promise<void> {
  const before = await treeOf(dir);
  await assert.rejects(init(dir), (error) => {
    assert.ok(error instanceof CommandError, String(error));
    assert.equal(error.exitStatus, EXIT_FAILURE);
    assert.ok(error.message.includes(culprit), error.message);
    return true;
  });
  assert.deepEqual(await treeOf(dir), before);
}

/** Entries to create, keyed by path: a file's contents, `FOLDER`, or `-> target` for a symlink. */
type Entries = Record<string, string | Uint8Array>;
const FOLDER = "folder";

async function place(dir: string, entries: Entries): Promise<void> {
  for (const [path, content] of Object.entries(entries)) {
    const at = join(dir, path);
    await mkdir(dirname(at), { recursive: true });
    if (content === FOLDER) await mkdir(at, { recursive: true });
    else if (String(content).startsWith("-> ")) await symlink(String(content).slice(3), at);
    else await writeFile(at, content);
  }
}

async function assertComplete(dir: string): Promise<void> {
  assert.equal(await readFile(join(dir, "service.toml"), "utf8"), CONFIG_TEMPLATE);
  assert.equal((await lstat(join(dir, "service.toml"))).mode & 0o777, 0o600);
  assert.deepEqual(await readdir(join(dir, "data")), ["log"]);
  assert.deepEqual(await readdir(join(dir, "data", "log")), []);
  assert.deepEqual((await readdir(dir)).filter((name) => name.includes("candidate")), []);
}

test("init() creates 0700 directories with parents, a 0600 configuration and an empty log", () =>
  withFolder(async (folder) => {
    const dir = join(folder, "a", "b", "deployment");
    assert.equal(await init(dir), "initialized");
    await assertComplete(dir);
    for (const path of ["a", "a/b", "a/b/deployment", "a/b/deployment/data"]) {
      assert.equal((await lstat(join(folder, path))).mode & 0o777, 0o700);
    }
    assert.equal((await lstat(join(dir, "data", "log"))).mode & 0o777, 0o700);
  }));

test("init() keeps unrelated files next to a deployment, and rewrites nothing of a complete one", () =>
  withFolder(async (dir) => {
    await place(dir, { "notes.md": "mine", src: FOLDER, link: "-> nowhere" });
    assert.equal(await init(dir), "initialized");
    assert.equal(await readFile(join(dir, "notes.md"), "utf8"), "mine");
    assert.deepEqual(await readdir(dir), ["data", "link", "notes.md", "service.toml", "src"]);
    await utimes(join(dir, "service.toml"), 1000, 1000);
    const before = await treeOf(dir);
    assert.equal(await init(dir), "already initialized");
    assert.deepEqual(await treeOf(dir), before);
  }));

test("init() follows a symlink to the deployment directory", () =>
  withFolder(async (folder) => {
    await mkdir(join(folder, "real"));
    await symlink("real", join(folder, "link"));
    assert.equal(await init(join(folder, "link")), "initialized");
    await assertComplete(join(folder, "real"));
  }));

const CANDIDATE = ".service.toml.candidate-0011223344556677";
const CUT_OFF: [name: string, entries: Entries][] = [
  ["before data/", {}],
  ["after data/", { "data": FOLDER }],
  ["after data/log/", { "data/log": FOLDER }],
  ["while writing the configuration", { "data/log": FOLDER, [CANDIDATE]: "[da" }],
  ["before the rename", { "data/log": FOLDER, [CANDIDATE]: CONFIG_TEMPLATE }],
];

for (const [name, entries] of CUT_OFF) {
  test(`init() completes a run that was interrupted ${name}`, () =>
    withFolder(async (dir) => {
      await place(dir, entries);
      assert.equal(await init(dir), "initialized");
      await assertComplete(dir);
      assert.equal(await init(dir), "already initialized");
    }));
}

test("init() run several times concurrently creates one complete deployment", () =>
  withFolder(async (folder) => {
    const dir = join(folder, "deployment");
    const outcomes = await Promise.all(Array.from({ length: 16 }, () => init(dir)));
    assert.ok(outcomes.includes("initialized"));
    await assertComplete(dir);
  }));

const UNCOMMITTED: [name: string, culprit: string, entries: Entries][] = [
  ["a log without configuration", "data/log", { "data/log/tail.ndjson": "" }],
  ["a stray file in data/", "data/stray", { "data/stray": "" }],
  ["data that is a file", "data", { data: "" }],
  ["data that is a symlink", "data: is a symlink", { elsewhere: FOLDER, data: "-> elsewhere" }],
  ["data/log that is a symlink", "data/log: is a symlink", {
    elsewhere: FOLDER,
    "data/log": "-> ../elsewhere",
  }],
  ["service.toml that is a dangling symlink", "service.toml: is a symlink", {
    "service.toml": "-> nowhere",
  }],
  ["service.toml that is a directory", "service.toml: is a directory", { "service.toml": FOLDER }],
  ["a foreign configuration", "service.toml", { "service.toml": "[data]\n" }],
  ["a configuration that is not UTF-8", "service.toml", { "service.toml": new Uint8Array([0xff]) }],
  ["an old database that is a symlink", "warehouse.duckdb", {
    "data/warehouse.duckdb": "-> nowhere",
  }],
];

for (const [name, culprit, entries] of UNCOMMITTED) {
  test(`init() refuses ${name} and leaves it unchanged`, () =>
    withFolder(async (dir) => {
      await place(dir, entries);
      await assertRefused(dir, culprit);
    }));
}

/** Replacements for parts of a deployment. The original is moved away first. */
const COMMITTED: [name: string, culprit: string, moved: string, entries: Entries][] = [
  ["an edited configuration", "service.toml", "service.toml", {
    "service.toml": CONFIG_TEMPLATE.replace('token = ""', 'token = "x"'),
  }],
  ["a configuration that serve refuses", "[replay] max_limit must be at least 1", "service.toml", {
    "service.toml": "[replay]\nmax_limit = 0\n",
  }],
  ["a configuration of another mode", "[security] mode locked is not supported", "service.toml", {
    "service.toml": '[security]\nmode = "locked"\n',
  }],
  ["a configuration without bounds", "larger than 65536 bytes", "service.toml", {
    "service.toml": "#".repeat(CONFIG_FILE_BYTES_MAX + 1),
  }],
  ["a configuration that is a symlink", "service.toml: is a symlink", "service.toml", {
    "service.toml": "-> moved",
  }],
  ["a missing data directory", "data: is missing", "data", {}],
  ["a missing log directory", "data/log: is missing, but", "data/log", {}],
  ["a stray file in data/", "data/stray", "", { "data/stray": "" }],
  ["a stray file in data/log/", "log/stray", "", { "data/log/stray": "" }],
  ["a tail that is a symlink", "tail.ndjson: is a symlink", "", {
    "data/log/tail.ndjson": "-> /etc/hostname",
  }],
  [
    "a tail without a manifest",
    "holds events but no manifest.json; restore the whole directory from a backup",
    "",
    { "data/log/tail.ndjson": "{" },
  ],
  ["a pending file without a manifest", "holds events but no manifest.json", "", {
    "data/log/pending/x.ndjson": "",
  }],
  ["a segment without a manifest", "holds events but no manifest.json", "", {
    "data/log/segments/x.parquet": "",
  }],
  ["a file at the socket path", "ground.sock: is a file", "", { "data/ground.sock": "" }],
];

for (const [name, culprit, moved, entries] of COMMITTED) {
  test(`init() on a deployment refuses ${name} and leaves it unchanged`, () =>
    withFolder(async (dir) => {
      await init(dir);
      if (moved !== "") await rename(join(dir, moved), join(dir, "moved"));
      await place(dir, entries);
      await assertRefused(dir, culprit);
    }));
}

const OLD_FILES: Entries = {
  "data/warehouse.duckdb": "old",
  "data/warehouse.duckdb.wal": "",
  "data/.warehouse.duckdb.candidate-1": "",
};
/** The files of a first startup that was interrupted before it wrote the manifest. */
const STARTED: Entries = {
  "data/log/tail.ndjson": "",
  "data/log/pending": FOLDER,
  "data/log/segments": FOLDER,
};

test("init() accepts log files, the socket and old files in the data directory", () =>
  withFolder(async (dir) => {
    await place(dir, OLD_FILES);
    assert.equal(await init(dir), "initialized");
    await place(dir, STARTED);
    assert.equal(await init(dir), "already initialized");
    const others = { "data/log/.lock": "", "data/log/manifest.json": "", "data/log/index": FOLDER };
    await place(dir, others);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(dir, "data/ground.sock"), resolve));
    try {
      assert.equal(await init(dir), "already initialized");
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
    assert.equal(await readFile(join(dir, "data", "warehouse.duckdb"), "utf8"), "old");
  }));

test("init() refuses a path with a file or a symlink to nothing as a parent", () =>
  withFolder(async (folder) => {
    await writeFile(join(folder, "file"), "");
    await symlink("nothing", join(folder, "symlink"));
    for (const name of ["file", "symlink"]) {
      const message = `${join(folder, name)}: not a directory; choose another path`;
      // For `data`, init also checks whether it is in a deployment.
      for (const dir of [name, join(name, "deployment"), join(name, "data")]) {
        await assert.rejects(init(join(folder, dir)), { name: "CommandError", message });
      }
    }
    assert.equal(await readFile(join(folder, "file"), "utf8"), "");
    assert.deepEqual((await readdir(folder)).sort(), ["file", "symlink"]);
  }));

test("init() refuses the data directory of a deployment", () =>
  withInitialized(async (dir) => {
    const data = join(dir, "data");
    await assert.rejects(init(data), /data: is the data directory of the deployment /);
    assert.equal(await init(dir), "already initialized");
  }));

test("init ends in a file system without directories to create", async (context) => {
  if (process.platform !== "linux") return skipLoudly(context, "needs /proc");
  const options = { permissions: ["--allow-all"], timeoutMs: 30_000 };
  const { code, stderr } = await runCli(["init", "/proc/none/log"], options);
  assert.equal(code, 1);
  assert.match(stderr, /^\/proc\/none: cannot be created: .*; choose another path\n$/);
});

test("init exits 0 or 1 and reports only on standard error", () =>
  withFolder(async (folder) => {
    const first = await runCli(["init", "deployment", "--config", "ignored"], { cwd: folder });
    assert.deepEqual([first.code, first.stdout], [0, ""]);
    assert.equal(first.stderr, "initialized deployment\n");
    const second = await runCli(["init"], { cwd: join(folder, "deployment") });
    assert.deepEqual([second.code, second.stdout], [0, ""]);
    assert.equal(second.stderr, "already initialized .\n");
    await writeFile(join(folder, "service.toml"), "");
    const refused = await runCli(["init"], { cwd: folder });
    assert.deepEqual([refused.code, refused.stdout], [1, ""]);
    assert.match(refused.stderr, /^[^\n]*service\.toml[^\n]*\n$/);
  }));

for (const place of [".", "data", "data/log"]) {
  test(`init() refuses a deployment in which others can write to ${place}`, () =>
    withFolder(async (folder) => {
      const dir = join(folder, "d");
      await mkdir(join(dir, "data", "log"), { recursive: true });
      await chmod(join(dir, place), 0o777);
      await assertRefused(dir, `${join(dir, place)}: owned by ${process.getuid!()}:`);
      await assertRefused(dir, "with mode 0777");
      await chmod(join(dir, place), 0o700);
      assert.equal(await init(dir), "initialized");
    }));

  test(`init() run by root refuses a deployment of which another user owns ${place}`, (context) => {
    if (process.getuid!() !== 0) return skipLoudly(context, "only root can give files away");
    return withFolder(async (folder) => {
      const dir = join(folder, "d");
      await mkdir(join(dir, "data", "log"), { recursive: true, mode: 0o700 });
      await chown(join(dir, place), NOBODY, NOBODY);
      await assertRefused(dir, `${join(dir, place)}: owned by ${NOBODY}:${NOBODY}`);
    });
  });
}
