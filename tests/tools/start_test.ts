import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFile, cp, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { test } from "node:test";
import {
  OWN_CHECKOUT,
  signalChild,
  spawnCommand,
  type Spawned,
  spawnScript,
  untilReported,
  withFolder,
} from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";
import { NEEDED, OLDER } from "../support/older_runtime.ts";

const START = join(OWN_CHECKOUT, "tools/start.ts");

async function start(folder: string): Promise<Spawned> {
  const spawned = spawnScript(START, [], { cwd: folder });
  await untilReported(spawned, "Ready.");
  return spawned;
}

/** Stops the demo like Ctrl-C, where both the terminal and `deno task` send it the signal. */
async function stop({ child, exited }: Spawned, signals = 2): Promise<void> {
  for (let sent = 0; sent < signals; sent++) signalChild(child, "SIGINT");
  const { code, stderr, stdout } = await exited;
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "");
}

test("start serves ./demo, prints commands that work, and accepts an edited configuration", {
  skip: spawnSync("curl", ["--version"]).status === 0 ? false : "curl not found",
}, () =>
  withFolder(async (folder) => {
    const first = await start(folder);
    assert.match(first.output.stderr, /^initialized demo\n/);
    const commands = first.output.stderr.match(/^ +curl .*$/gm) ?? [];
    assert.equal(commands.length, 2);
    const [posted, read] = commands.map((command) => {
      const options = { cwd: folder, encoding: "utf8" } as const;
      return JSON.parse(spawnSync("sh", ["-c", command], options).stdout);
    });
    assert.equal(posted.status, "committed");
    assert.equal(read.events.at(-1).event_id, posted.last_event_id);
    await stop(first);

    await appendFile(join(folder, "demo", "service.toml"), "# mine\n");
    const second = await start(folder);
    assert.match(second.output.stderr, /^opened a log of 2 events;.*\nserving /);
    await stop(second);
  }));

test("start refuses an older runtime before it creates anything", () =>
  withFolder(async (folder) => {
    const options = { ...OLDER, cwd: folder, permissions: ["--allow-all"] };
    const { code, stderr } = await spawnScript(START, [], options).exited;
    assert.equal(code, 1);
    assert.match(stderr, NEEDED);
    assert.deepEqual(await readdir(folder), []);
  }));

const deno = executableOf("deno");

/** Copies this tree to a directory in which no packages are installed. */
async function cloneTo(clone: string): Promise<void> {
  const isCopied = (path: string) => !/^(\.git|node_modules|demo|dist)$/.test(basename(path));
  await cp(OWN_CHECKOUT, clone, { recursive: true, filter: isCopied });
}

test("deno task start works in a clone whose path has spaces and commas", {
  skip: deno === null ? absenceOf("deno") : false,
}, () =>
  withFolder(async (folder) => {
    const clone = join(folder, "my clone, the 2nd");
    await cloneTo(clone);
    const spawned = spawnCommand([deno!, "task", "start"], { cwd: clone });
    await untilReported(spawned, "Ready.");
    // `deno task` forwards the signal; a second one can end it with exit status 130.
    await stop(spawned, 1);
  }));

test("cli.ts says which command installs the packages that it needs", () =>
  withFolder(async (clone) => {
    await cloneTo(clone);
    const options = { cwd: clone, permissions: ["--allow-all"] };
    const { code, stderr } = await spawnScript(join(clone, "cli.ts"), ["init"], options).exited;
    assert.equal(code, 1);
    assert.equal(stderr, "packages are missing: in a clone, run npm ci --omit=dev\n");
  }));
