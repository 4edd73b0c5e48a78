/**
 * The data directory of a running service is moved away, and an older copy, a link or nothing takes
 * its place. The process continues with its open files, changes nothing in the replacement and
 * exits cleanly. The moved directory contains everything acknowledged.
 */
import assert from "node:assert/strict";
import { cp, mkdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { init } from "../../src/commands/init.ts";
import { allEvents, batchWith, commit } from "../contract/support/api.ts";
import { type Serving, startServe, withFolder } from "../../tools/support/program.ts";
import { configOf, runOn } from "./support/hostile_deployment.ts";
import { treeOf } from "./support/hostile_entry.ts";

interface Folders {
  /** The deployment. */
  dir: string;
  /** The path to which its data directory is moved. */
  away: string;
  /** An earlier copy of the data directory. */
  older: string;
}

const SWAPS: [title: string, put: (folders: Folders) => Promise<unknown>][] = [
  ["nothing", () => Promise.resolve()],
  ["an older copy", ({ dir, older }) => cp(older, join(dir, "data"), { recursive: true })],
  ["an empty directory", ({ dir }) => mkdir(join(dir, "data"))],
  ["a link to an older copy", ({ dir, older }) => symlink(older, join(dir, "data"))],
];

/** Starts the service with a socket outside the data directory. */
async function start(dir: string, socketPath: string): Promise<Serving> {
  const permissions = ["--allow-read", "--allow-write", `--allow-net=unix:${socketPath}`];
  return await startServe(dir, { socketPath, permissions });
}

async function batchIdsOf(socketPath: string): Promise<string[]> {
  return (await allEvents(socketPath)).map(({ batch_id }) => batch_id);
}

/** The contents of the data directory's replacement, following a link. */
async function stateOf({ dir, older }: Folders): Promise<string> {
  const at = join(dir, "data");
  const trees = await Promise.all([at, older].map((folder) => treeOf(folder).catch(() => null)));
  return JSON.stringify(trees);
}

for (const [title, put] of SWAPS) {
  test(`serve survives replacement of its data directory by ${title}`, () =>
    withFolder(async (folder) => {
      const at = (name: string) => join(folder, name);
      const folders = { dir: at("deployment"), away: at("away"), older: at("older") };
      const socketPath = at("s.sock");
      await mkdir(folders.dir);
      await init(folders.dir, () => {});
      await writeFile(configOf(folders.dir), `[server]\nsocket = "${socketPath}"\n`);
      const serving = await start(folders.dir, socketPath);
      await commit(socketPath, batchWith({ batch_id: "before" }));
      await cp(join(folders.dir, "data"), folders.older, { recursive: true });

      await rename(join(folders.dir, "data"), folders.away);
      await put(folders);
      const before = await stateOf(folders);
      await commit(socketPath, batchWith({ batch_id: "after" }));
      assert.deepEqual(await batchIdsOf(socketPath), ["before", "after"]);
      const { code, stderr } = await serving.stop();
      assert.equal(code, 0, stderr);
      assert.equal(await stateOf(folders), before, "the replacement is unchanged");

      await writeFile(
        configOf(folders.dir),
        `[data]\ndir = "../away"\n[server]\nsocket = "${socketPath}"\n`,
      );
      const { status, stdout } = await runOn(folders.dir, ["verify", "--chain"]);
      assert.equal(status, 0, stdout);
      const again = await start(folders.dir, socketPath);
      assert.deepEqual(await batchIdsOf(socketPath), ["before", "after"]);
      assert.equal((await again.stop()).code, 0);
    }));
}
