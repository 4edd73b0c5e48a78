/**
 * The data directory of a running service is moved away, and an older copy, a link or nothing takes
 * its place, or it loses files, or is covered by a mount. The service acknowledges nothing more,
 * ends its followers and exits. It puts neither a socket nor a file into the replacement, and the
 * moved directory contains everything acknowledged.
 */
import assert from "node:assert/strict";
import { cp, mkdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { init } from "../../src/commands/init.ts";
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { OWNERSHIP_CHECK_MS } from "../../src/log/storage/owned_storage.ts";
import { allEvents, batchWith, commit } from "../contract/support/api.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import { type Serving, startServe, withFolder } from "../../tools/support/program.ts";
import { treeOf } from "../support/file_tree.ts";
import { configOf, runOn } from "./support/hostile_deployment.ts";
import { skipLoudly } from "./support/skip.ts";
import { run } from "./support/small_disk.ts";

interface Folders {
  /** The deployment. */
  dir: string;
  /** Its data directory. */
  data: string;
  /** The path to which its data directory is moved. */
  away: string;
  /** An earlier copy of the data directory. */
  older: string;
}

/** A service that has not noticed the loss by then is killed, which fails the test. */
const SERVE_MS_MAX = 30_000;

type Take = (folders: Folders) => Promise<unknown>;

const moved = (put: Take): Take => async (folders) => {
  await rename(folders.data, folders.away);
  await put(folders);
};

const TAKES: [title: string, take: Take][] = [
  ["is replaced by nothing", moved(() => Promise.resolve())],
  [
    "is replaced by an older copy",
    moved(({ data, older }) => cp(older, data, { recursive: true })),
  ],
  ["is replaced by an empty directory", moved(({ data }) => mkdir(data))],
  ["is replaced by a link to an older copy", moved(({ data, older }) => symlink(older, data))],
  ["loses its tail", ({ data }) => rm(join(data, "log", TAIL_FILE))],
  ["loses its segments", ({ data }) => rm(join(data, "log", "segments"), { recursive: true })],
  [
    "loses its pending files",
    ({ data }) => rm(join(data, "log", "pending"), { recursive: true }),
  ],
  [
    "has an older copy written over its tail",
    async ({ data, older }) => {
      await writeFile(join(data, "log", TAIL_FILE), await readFile(join(older, "log", TAIL_FILE)));
    },
  ],
];

async function start(dir: string, socketPath: string): Promise<Serving> {
  const permissions = [
    "--allow-read",
    "--allow-write",
    "--allow-sys",
    `--allow-net=unix:${socketPath}`,
  ];
  return await startServe(dir, { socketPath, permissions, timeoutMs: SERVE_MS_MAX });
}

async function batchIdsOf(socketPath: string): Promise<string[]> {
  return (await allEvents(socketPath)).map(({ batch_id }) => batch_id);
}

/** The contents of the data directory's replacement, following a link. */
async function stateOf({ data, older }: Folders): Promise<string> {
  // The time of a change tells of files that have appeared and disappeared.
  const stateOf = async (folder: string) => [
    String((await stat(folder, { bigint: true })).mtimeNs),
    await treeOf(folder),
  ];
  const states = [data, older].map((folder) => stateOf(folder).catch(() => null));
  return JSON.stringify(await Promise.all(states));
}

/** Calls `use` while a service with the batch "before" runs, whose socket is in its data folder. */
function withTaken(use: (folders: Folders, serving: Serving, socketPath: string) => Promise<void>) {
  return withFolder(async (folder) => {
    const dir = join(folder, "deployment");
    const [away, older] = [join(folder, "away"), join(folder, "older")];
    const folders = { dir, data: join(dir, "data"), away, older };
    const socketPath = join(folders.data, "ground.sock");
    await mkdir(dir);
    await init(dir, () => {});
    const serving = await start(dir, socketPath);
    await commit(socketPath, batchWith({ batch_id: "before" }));
    await cp(join(folders.data, "log"), join(older, "log"), { recursive: true });
    await use(folders, serving, socketPath);
  });
}

/** Restarts the service on the moved directory. */
async function assertHoldsAll({ dir }: Folders, batchIds: readonly string[]): Promise<void> {
  await writeFile(configOf(dir), `[data]\ndir = "../away"\n[server]\nsocket = "s.sock"\n`);
  const { status, stdout } = await runOn(dir, ["verify", "--chain"]);
  assert.equal(status, 0, stdout);
  const socketPath = join(dir, "s.sock");
  const again = await start(dir, socketPath);
  assert.deepEqual(await batchIdsOf(socketPath), batchIds);
  assert.equal((await again.stop()).code, 0);
}

for (const [title, take] of TAKES) {
  test(`serve stops when its data directory ${title}`, () =>
    withTaken(async (folders, serving, socketPath) => {
      const follower = await FollowReader.open(socketPath);
      assert.equal((await follower.catchUp()).length, 1);
      await commit(socketPath, batchWith({ batch_id: "last" }));
      assert.equal((await follower.takeLive(1)).length, 1);

      await take(folders);
      const before = await stateOf(folders);
      const { code, stderr } = await serving.exited;
      assert.equal(code, 1, stderr);
      assert.match(
        stderr,
        /data\/log\/(\.lock|tail\.ndjson|segments|pending): (is no longer the file|was overwr)/,
      );
      assert.match(stderr, /nothing more was acknowledged\n$/);
      assert.notEqual((await follower.nextOf("end")).last_event_id, null);
      if (title.startsWith("is replaced")) {
        assert.equal(await stateOf(folders), before, "the replacement is unchanged");
        await assertHoldsAll(folders, ["before", "last"]);
      }
    }));
}

test("serve stops when its data directory is covered by another file system", (context) =>
  withTaken(async (folders, serving, socketPath) => {
    await commit(socketPath, batchWith({ batch_id: "last" }));
    const fault = run("mount", ["-t", "tmpfs", "none", folders.data]);
    if (fault !== null) {
      await serving.stop();
      return skipLoudly(context, fault);
    }
    try {
      const before = await stateOf(folders);
      const { code, stderr } = await serving.exited;
      assert.equal(code, 1, stderr);
      assert.match(stderr, /data\/log\/\.lock: is no longer the file/);
      assert.equal(await stateOf(folders), before, "the other file system is unchanged");
    } finally {
      assert.equal(run("umount", ["-l", folders.data]), null);
    }
    await rename(folders.data, folders.away);
    await assertHoldsAll(folders, ["before", "last"]);
  }));

test("serve continues when its data directory is moved and linked back", () =>
  withTaken(async (folders, serving, socketPath) => {
    await rename(folders.data, folders.away);
    await symlink(folders.away, folders.data);
    const endMs = performance.now() + 2 * OWNERSHIP_CHECK_MS;
    const batchIds = ["before"];
    while (performance.now() < endMs) {
      batchIds.push(`b${batchIds.length}`);
      await commit(socketPath, batchWith({ batch_id: batchIds.at(-1)! }));
    }
    assert.deepEqual(await batchIdsOf(socketPath), batchIds);
    const { code, stderr } = await serving.stop();
    assert.equal(code, 0, stderr);
  }));
