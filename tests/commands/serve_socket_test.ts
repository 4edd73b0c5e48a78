/** `serve` when its socket path already exists. */
import assert from "node:assert/strict";
import { lstat, mkdir, readFile, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { init } from "../../src/commands/init.ts";
import {
  runCli,
  type Serving,
  startServe,
  untilPrinted,
  untilReady,
  untilReported,
  withFolder,
  withInitialized,
} from "../../tools/support/program.ts";

async function listenOn(path: string): Promise<Server> {
  // Ignores errors, because a client that probes the socket disconnects before the response.
  const server = createServer((connection) => connection.on("error", () => {}).end("alive"));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return server;
}

function answerOf(path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    connect({ path }).setEncoding("utf8").on("data", (piece) => text += piece)
      .on("end", () => resolve(text)).on("error", reject);
  });
}

async function identityOf(path: string): Promise<string> {
  const { ino, mode, mtimeMs } = await lstat(path);
  return `${ino} ${mode} ${mtimeMs}`;
}

const OCCUPANTS: [name: string, make: (path: string) => Promise<unknown>][] = [
  ["a regular file", (path) => writeFile(path, "mine")],
  ["a directory", (path) => mkdir(path)],
  ["a dangling symlink", (path) => symlink("nowhere", path)],
  ["a symlink to a file", async (path) => {
    await writeFile(`${path}.target`, "mine");
    await symlink(`${path}.target`, path);
  }],
];

test("serve exits 1 if its socket path is not a socket, and keeps the file", async () => {
  for (const [name, make] of OCCUPANTS) {
    await withInitialized(async (dir) => {
      const path = join(dir, "data", "ground.sock");
      await make(path);
      const before = await identityOf(path);
      const { code, stdout, stderr } = await runCli(["serve"], { cwd: dir });
      assert.equal(code, 1, name);
      assert.equal(stdout, "");
      assert.match(stderr, /ground\.sock: exists and is not a socket/);
      assert.equal(await identityOf(path), before, name);
    });
  }
});

test("serve exits 1 if another process listens on its socket, and keeps the file", () =>
  withInitialized(async (dir) => {
    const path = join(dir, "data", "ground.sock");
    const server = await listenOn(path);
    try {
      const before = await identityOf(path);
      const { code, stderr } = await runCli(["serve"], { cwd: dir });
      assert.equal(code, 1);
      assert.match(stderr, /ground\.sock: another service is listening on this socket/);
      assert.equal(await identityOf(path), before);
      assert.equal(await answerOf(path), "alive");
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  }));

test("serve exits 1 when the directory of its socket is missing", () =>
  withInitialized(async (dir) => {
    const config = join(dir, "service.toml");
    const text = await readFile(config, "utf8");
    await writeFile(config, text.replace("data/ground.sock", "none/ground.sock"));
    const { code, stderr } = await runCli(["serve"], { cwd: dir });
    assert.equal(code, 1);
    assert.match(stderr, /none\/ground\.sock/);
  }));

/** Serves a new deployment in `dir`, with its socket at an absolute path. */
async function serveAt(dir: string, socketPath: string): Promise<Serving> {
  const deployment = join(dir, "deployment");
  await init(deployment, () => {});
  const config = join(deployment, "service.toml");
  const text = await readFile(config, "utf8");
  await writeFile(config, text.replace("data/ground.sock", socketPath));
  return await startServe(deployment, {
    socketPath,
    permissions: ["--allow-read", "--allow-write", `--allow-net=unix:${socketPath}`],
  });
}

test("serve binds a socket at an absolute path outside the deployment", () =>
  withFolder(async (dir) => {
    const socketPath = join(dir, "s.sock");
    const serving = await serveAt(dir, socketPath);
    assert.equal((await serving.stop()).code, 0);
  }));

test("serve binds its socket again after the file or its directory was removed", () =>
  withFolder(async (dir) => {
    const run = join(dir, "run");
    await mkdir(run);
    const socketPath = join(run, "s.sock");
    const serving = await serveAt(dir, socketPath);
    await unlink(socketPath);
    await untilReported(serving, `${socketPath}: was removed; reopening the socket\n`);
    await untilReady(serving);

    // While the directory is missing, binding fails and is retried.
    await rm(run, { recursive: true });
    await untilPrinted(serving, ({ stderr }) => stderr.split("was removed").length === 3);
    await mkdir(run);
    await untilReady(serving);
    const { code, stderr } = await serving.stop();
    assert.deepEqual([code, stderr.split("was removed").length], [0, 3], stderr);
  }));
