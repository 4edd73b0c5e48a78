import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { access, appendFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  signalChild,
  type Spawned,
  spawnScript,
  untilReported,
  withFolder,
} from "../../tools/support/program.ts";

const START = fileURLToPath(new URL("../../tools/start.ts", import.meta.url));

/** Starts the demo in another directory, with the permissions of the task in deno.json. */
async function start(folder: string): Promise<Spawned> {
  const socketPath = join(folder, "demo", "data", "ground.sock");
  const permissions = ["--allow-read=.", "--allow-write=demo", `--allow-net=unix:${socketPath}`];
  const spawned = spawnScript(START, [], { cwd: folder, permissions });
  await untilReported(spawned, "Ready.");
  return spawned;
}

/** Stops the demo like Ctrl-C: the terminal sends the signal, and so does `deno task`. */
async function stop({ child, exited }: Spawned): Promise<void> {
  signalChild(child, "SIGINT");
  signalChild(child, "SIGINT");
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
    assert.match(second.output.stderr, /^serving /);
    await stop(second);
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
