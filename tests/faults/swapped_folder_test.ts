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
import { TAIL_FILE } from "../../src/log/storage/file_names.ts";
import { OWNERSHIP_CHECK_MS } from "../../src/log/storage/owned_storage.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import { type Deployment, withDeployment } from "../support/deployment.ts";
import { treeOf } from "../support/file_tree.ts";
import { skipLoudly } from "./support/skip.ts";
import { run } from "./support/small_disk.ts";

interface Folders {
  /** The data directory. */
  data: string;
  /** The path to which it is moved. */
  away: string;
  /** An earlier copy of it. */
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
  ["loses its pending files", ({ data }) => rm(join(data, "log/pending"), { recursive: true })],
  ["has an older copy written over its tail", async ({ data, older }) => {
    await writeFile(join(data, "log", TAIL_FILE), await readFile(join(older, "log", TAIL_FILE)));
  }],
];

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

/** Calls `use` while a service runs that has acknowledged a batch. */
function withTaken(use: (folders: Folders, served: Deployment) => Promise<void>): Promise<void> {
  return withDeployment(async (deployment) => {
    const { folder, dir } = deployment;
    const [away, older] = [join(folder, "away"), join(folder, "older")];
    const folders = { data: join(dir, "data"), away, older };
    const permissions = [`--allow-read=${folder}`, `--allow-write=${folder}`];
    permissions.push("--allow-sys", `--allow-net=unix:${deployment.socketPath}`);
    await deployment.start({ permissions, timeoutMs: SERVE_MS_MAX });
    await deployment.append("before");
    await cp(deployment.logDir, join(older, "log"), { recursive: true });
    await use(folders, deployment);
  });
}

for (const [title, take] of TAKES) {
  test(`serve stops when its data directory ${title}`, () =>
    withTaken(async (folders, deployment) => {
      const follower = await FollowReader.open(deployment.socketPath);
      assert.equal((await follower.catchUp()).length, 1);
      await deployment.append("last");
      assert.equal((await follower.takeLive(1)).length, 1);

      await take(folders);
      const before = await stateOf(folders);
      const { code, stderr } = await deployment.serving.exited;
      assert.equal(code, 1, stderr);
      assert.match(
        stderr,
        /data\/log\/(\.lock|tail\.ndjson|segments|pending): (is no longer the file|was overwr)/,
      );
      assert.match(stderr, /nothing more was acknowledged\n$/);
      assert.notEqual((await follower.nextOf("end")).last_event_id, null);
      if (title.startsWith("is replaced")) {
        assert.equal(await stateOf(folders), before, "the replacement is unchanged");
        await rm(folders.data, { recursive: true, force: true });
        await rename(folders.away, folders.data);
        await deployment.assertContinues();
      }
    }));
}

test("serve stops when its data directory is covered by another file system", (context) =>
  withTaken(async (folders, deployment) => {
    await deployment.append("last");
    const fault = run("mount", ["-t", "tmpfs", "none", folders.data]);
    if (fault !== null) return skipLoudly(context, fault);
    try {
      const before = await stateOf(folders);
      const { code, stderr } = await deployment.serving.exited;
      assert.equal(code, 1, stderr);
      assert.match(stderr, /data\/log\/\.lock: is no longer the file/);
      assert.equal(await stateOf(folders), before, "the other file system is unchanged");
    } finally {
      assert.equal(run("umount", ["-l", folders.data]), null);
    }
    await deployment.assertContinues();
  }));

test("serve continues when its data directory is moved and linked back", () =>
  withTaken(async (folders, deployment) => {
    await rename(folders.data, folders.away);
    await symlink(folders.away, folders.data);
    const endMs = performance.now() + 2 * OWNERSHIP_CHECK_MS;
    while (performance.now() < endMs) await deployment.append(`b${deployment.receipts.length}`);
    await deployment.assertShows();
    await deployment.stop();
  }));
