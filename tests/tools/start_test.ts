import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { access, appendFile, cp, mkdir, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  signalChild,
  spawnCommand,
  type Spawned,
  spawnScript,
  untilReported,
  withFolder,
} from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";
import { NEEDED, OLDER } from "../support/older_runtime.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const START = fileURLToPath(new URL("../../tools/start.ts", import.meta.url));

/** Narrower permissions than the task's: a Deno flag cannot name a socket path with a comma. */
async function start(folder: string): Promise<Spawned> {
  const socketPath = join(folder, "demo", "data", "ground.sock");
  const permissions = [
    "--allow-read=.",
    "--allow-write=demo",
    "--allow-sys",
    `--allow-net=unix:${socketPath}`,
  ];
  const spawned = spawnScript(START, [], { cwd: folder, permissions });
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

test("start creates and serves ./demo, and reuses it on the next run even if edited", () =>
  withFolder(async (folder) => {
    const first = await start(folder);
    assert.match(first.output.stderr, /^initialized demo\n/);
    await access(join(folder, "demo", "data", "ground.sock"));
    await stop(first);

    await appendFile(join(folder, "demo", "service.toml"), "# mine\n");
    const second = await start(folder);
    assert.match(second.output.stderr, /^opened a log of 0 events;.*\nserving /);
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

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

test("start prints commands that work when pasted into a shell", {
  skip: hasCurl ? false : "curl not found",
}, () =>
  withFolder(async (folder) => {
    const spawned = await start(folder);
    const commands = spawned.output.stderr.match(/^ +curl .*$/gm) ?? [];
    assert.equal(commands.length, 2);
    const [posted, read] = commands.map((command) => {
      const options = { cwd: folder, encoding: "utf8" } as const;
      return JSON.parse(spawnSync("sh", ["-c", command], options).stdout);
    });
    assert.equal(posted.status, "committed");
    assert.equal(read.events.at(-1).event_id, posted.last_event_id);
    await stop(spawned);
  }));

const deno = executableOf("deno");
const skip = deno === null ? absenceOf("deno") : false;

/** Copies what `deno task start` needs into a directory in which no packages are installed. */
async function cloneTo(clone: string): Promise<void> {
  const { workspace } = JSON.parse(await readFile(join(ROOT, "deno.json"), "utf8"));
  const members = workspace.flatMap((member: string) =>
    ["deno.json", "package.json"].map((name) => join(member, name))
  ).filter((path: string) => existsSync(join(ROOT, path)));
  const roots = ["deno.json", "deno.lock", "package.json", "cli.ts", "event.ts", "mod.ts"];
  for (const path of [...roots, ...members, "src", "tools"]) {
    await mkdir(dirname(join(clone, path)), { recursive: true });
    await cp(join(ROOT, path), join(clone, path), { recursive: true });
  }
}

test(
  "deno task start works in a clone whose path has spaces and commas",
  { skip },
  () =>
    withFolder(async (folder) => {
      const clone = join(folder, "my clone, the 2nd");
      await cloneTo(clone);
      const spawned = spawnCommand([deno!, "task", "start"], { cwd: clone });
      await untilReported(spawned, "Ready.");
      await access(join(clone, "demo", "data", "ground.sock"));
      // `deno task` forwards the signal; a second one can end it with exit status 130.
      await stop(spawned, 1);
    }),
);

test("cli.ts says which command installs the packages that it needs", () =>
  withFolder(async (clone) => {
    await cloneTo(clone);
    const options = { cwd: clone, permissions: ["--allow-all"] };
    const { code, stderr } = await spawnScript(join(clone, "cli.ts"), ["init"], options).exited;
    assert.deepEqual([code, stderr], [
      1,
      "packages are missing: in a clone, run npm ci --omit=dev\n",
    ]);
  }));
